import { NODE_TOPOLOGIES_PATH } from '../../../kube/cluster-view/node-topologies.ts';
import { nodeTopology } from '../../../kube/node-topology.ts';
import { REJECTIONS } from '../../../model/kubelet/provider.ts';
import { NAMESPACE, PREDICTION_DIFFERS, SCHEDULER, SERVICE, WEBHOOK_REQUIRED } from '../../../model/names.ts';
import packageJson from '../../../package.json' with { type: 'json' };
import { askInCluster, readElection, SCHEDULER_LEASE, type SilentExtender } from '../../extender/ask.ts';
import type { ClusterAccess } from '../../support/cluster.ts';
import { eventsOf, INSTANCES, LAUNCHERS, MACHINES, MIGRATIONS, NETWORKS, NODES } from '../../support/kinds.ts';
import { readAgentLeases, readAll, readOne } from '../../support/lists.ts';
import {
  apiVersion,
  deployment,
  type ExtenderState,
  endpointSlice,
  extenderState,
  installedNamespace,
  kubevirt,
  roleBinding,
  schedulerPod,
  systemPod,
  tlsSecret,
  webhookConfiguration,
} from './objects.ts';
import { type Read, settled, tolerant } from './read.ts';
import { presentedCertificates, reviewLauncher } from './webhook-calls.ts';

export type DoctorFacts = Awaited<ReturnType<typeof readFacts>>;

const SECRETS = `/api/v1/namespaces/${NAMESPACE}/secrets`;
const KUBE_SYSTEM_PODS = '/api/v1/namespaces/kube-system/pods';
const ADMISSION = '/apis/admissionregistration.k8s.io/v1';

/** Reads everything concurrently. Only nodes must be readable. @throws KubeError @param now milliseconds since 1970 */
export async function readFacts(cluster: ClusterAccess, now: number) {
  const { client } = cluster;
  const list = <T>(path: string, schema: Parameters<typeof readAll<T>>[2], query = {}): Promise<Read<readonly T[]>> =>
    tolerant(readAll(client, path, schema, query));
  const systemPods = list(`/api/v1/namespaces/${NAMESPACE}/pods`, systemPod);
  const presented = systemPods.then((pods) => presentedCertificates(cluster, pods));
  const object = <T>(path: string, schema: Parameters<typeof readOne<T>>[2]) => tolerant(readOne(client, path, schema));
  const facts = await settled({
    nodes: readAll(client, ...NODES),
    topologies: list(NODE_TOPOLOGIES_PATH, nodeTopology),
    agents: tolerant(readAgentLeases(client, now)),
    mutating: list(`${ADMISSION}/mutatingwebhookconfigurations`, webhookConfiguration),
    validating: list(`${ADMISSION}/validatingwebhookconfigurations`, webhookConfiguration),
    webhookRequired: object(
      `/apis/rbac.authorization.k8s.io/v1/namespaces/${NAMESPACE}/rolebindings/${WEBHOOK_REQUIRED}`,
      roleBinding,
    ),
    namespace: object(`/api/v1/namespaces/${NAMESPACE}`, installedNamespace),
    endpoints: list(`/apis/discovery.k8s.io/v1/namespaces/${NAMESPACE}/endpointslices`, endpointSlice),
    webhookSecret: object(`${SECRETS}/plumbline-webhook-tls`, tlsSecret),
    deployments: list(`/apis/apps/v1/namespaces/${NAMESPACE}/deployments`, deployment),
    systemPods,
    review: reviewLauncher(client),
    presented,
    schedulerElection: tolerant(readElection(client, SCHEDULER_LEASE, now)),
    apiVersion: tolerant(readOne(client, '/version', apiVersion).then((version) => version?.gitVersion)),
    extender: extenderSays(cluster),
    schedulers: list(KUBE_SYSTEM_PODS, schedulerPod, { labelSelector: 'component=kube-scheduler' }),
    extenderPods: list(KUBE_SYSTEM_PODS, schedulerPod, { labelSelector: `app.kubernetes.io/name=${SERVICE}` }),
    kubevirts: list('/apis/kubevirt.io/v1/kubevirts', kubevirt),
    nads: list(...NETWORKS),
    launchers: list(...LAUNCHERS),
    machines: list(...MACHINES),
    instances: list(...INSTANCES),
    migrations: list(...MIGRATIONS),
    cannotEvict: list(...eventsOf('CannotEvict')),
    rejections: tolerant(
      Promise.all(REJECTIONS.map((reason) => readAll(client, ...eventsOf(reason)))).then((lists) => lists.flat()),
    ),
    differences: list(...eventsOf(PREDICTION_DIFFERS)),
  });
  return { now, command: packageJson.version, ...facts };
}

type ExtenderFact = Read<ExtenderState> | (SilentExtender & { readonly value?: undefined });

/** The state that the extender reports, on the same path as for `explain`. */
async function extenderSays(cluster: ClusterAccess): Promise<ExtenderFact> {
  const response = await askInCluster(cluster, {});
  if ('missing' in response) return response;
  const state = extenderState.safeParse(response.answer);
  if (state.success) return { value: state.data };
  const failure = 'its answer is not that of an extender';
  return { missing: 'silent', why: `the extender did not answer (${failure})`, failure };
}

/** `sidecar`: in the pod of Plumbline's kube-scheduler, `loopback`: next to the cluster's own. */
export type Way = 'sidecar' | 'loopback' | 'none' | 'unknown';

export function wayOf({ deployments, schedulerElection, extenderPods }: DoctorFacts): Way {
  const names = deployments.value?.map(({ metadata }) => metadata.name);
  if (names?.includes(SCHEDULER)) return 'sidecar';
  if ((extenderPods.value?.length ?? 0) > 0) return 'loopback';
  if (names !== undefined) return 'none';
  return schedulerElection.value === undefined ? 'unknown' : 'sidecar';
}
