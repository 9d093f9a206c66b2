import type { X509Certificate } from 'node:crypto';
import { type KubeClient, KubeError } from '../../../kube/client.ts';
import { NODE_TOPOLOGIES_PATH } from '../../../kube/cluster-view/node-topologies.ts';
import { nodeTopology } from '../../../kube/node-topology.ts';
import { REJECTIONS } from '../../../model/kubelet/provider.ts';
import * as names from '../../../model/names.ts';
import { COMPUTE } from '../../../model/shapes.ts';
import packageJson from '../../../package.json' with { type: 'json' };
import { askInCluster, readElection, SCHEDULER_LEASE, type SilentExtender } from '../../extender/ask.ts';
import type { ClusterAccess } from '../../support/cluster.ts';
import * as kinds from '../../support/kinds.ts';
import {
  type AgentLeases,
  type Read,
  readAgentLeases,
  readAll,
  readOne,
  settled,
  tolerant,
} from '../../support/lists.ts';
import * as objects from '../../support/objects.ts';

export type DoctorFacts = Awaited<ReturnType<typeof readFacts>>;

const SECRETS = `/api/v1/namespaces/${names.NAMESPACE}/secrets`;
const KUBE_SYSTEM_PODS = '/api/v1/namespaces/kube-system/pods';
const ROLE_BINDINGS = `/apis/rbac.authorization.k8s.io/v1/namespaces/${names.NAMESPACE}/rolebindings`;
const OF_EXTENDERS = `app.kubernetes.io/name=${names.SERVICE}`;

/** Reads everything concurrently. Only nodes must be readable. @throws KubeError @param now milliseconds since 1970 */
export async function readFacts(cluster: ClusterAccess, now: number) {
  const { client } = cluster;
  const list = <T>(path: string, schema: Parameters<typeof readAll<T>>[2], query = {}): Promise<Read<readonly T[]>> =>
    tolerant(readAll(client, path, schema, query));
  const systemPods = list(...kinds.SYSTEM_PODS);
  const presented = systemPods.then((pods) => presentedCertificates(cluster, pods));
  const object = <T>(path: string, schema: Parameters<typeof readOne<T>>[2]) => tolerant(readOne(client, path, schema));
  const facts = await settled({
    nodes: readAll(client, ...kinds.NODES),
    topologies: list(NODE_TOPOLOGIES_PATH, nodeTopology),
    agents: readAgents(client, now),
    mutating: list(...kinds.MUTATING),
    validating: list(...kinds.VALIDATING),
    webhookRequired: object(`${ROLE_BINDINGS}/${names.WEBHOOK_REQUIRED}`, objects.roleBinding),
    namespace: object(`/api/v1/namespaces/${names.NAMESPACE}`, objects.installedNamespace),
    endpoints: list(`/apis/discovery.k8s.io/v1/namespaces/${names.NAMESPACE}/endpointslices`, objects.endpointSlice),
    webhookSecret: object(`${SECRETS}/plumbline-webhook-tls`, objects.tlsSecret),
    deployments: list(...kinds.DEPLOYMENTS),
    systemPods,
    review: reviewLauncher(client),
    presented,
    schedulerElection: tolerant(readElection(client, SCHEDULER_LEASE, now)),
    apiVersion: tolerant(readOne(client, '/version', objects.apiVersion).then((version) => version?.gitVersion)),
    extender: extenderSays(cluster),
    schedulers: list(KUBE_SYSTEM_PODS, objects.schedulerPod, { labelSelector: 'component=kube-scheduler' }),
    extenderPods: list(KUBE_SYSTEM_PODS, objects.schedulerPod, { labelSelector: OF_EXTENDERS }),
    kubevirts: list(...kinds.KUBEVIRTS),
    nads: list(...kinds.NETWORKS),
    launchers: list(...kinds.LAUNCHERS),
    machines: list(...kinds.MACHINES),
    instances: list(...kinds.INSTANCES),
    migrations: list(...kinds.MIGRATIONS),
    cannotEvict: list(...kinds.eventsOf('CannotEvict')),
    rejections: tolerant(
      Promise.all(REJECTIONS.map((reason) => readAll(client, ...kinds.eventsOf(reason)))).then((lists) => lists.flat()),
    ),
    differences: list(...kinds.eventsOf(names.PREDICTION_DIFFERS)),
  });
  return { now, command: packageJson.version, ...facts };
}

async function readAgents(client: KubeClient, now: number): Promise<Read<AgentLeases>> {
  const value = await readAgentLeases(client, now);
  return value === undefined ? { missing: 'forbidden' } : { value };
}

type ExtenderFact = Read<objects.ExtenderState> | (SilentExtender & { readonly value?: undefined });

/** The state that the extender reports, on the same path as for `explain`. */
async function extenderSays(cluster: ClusterAccess): Promise<ExtenderFact> {
  const response = await askInCluster(cluster, {});
  if ('missing' in response) return response;
  const state = objects.extenderState.safeParse(response.answer);
  if (state.success) return { value: state.data };
  const failure = 'its answer is not that of an extender';
  return { missing: 'silent', why: `the extender did not answer (${failure})`, failure };
}

/** `sidecar`: in the pod of Plumbline's kube-scheduler, `loopback`: next to the cluster's own. */
export type Way = 'sidecar' | 'loopback' | 'none' | 'unknown';

export function wayOf({ deployments, schedulerElection, extenderPods }: DoctorFacts): Way {
  const deployed = deployments.value?.map(({ metadata }) => metadata.name);
  if (deployed?.includes(names.SCHEDULER)) return 'sidecar';
  if ((extenderPods.value?.length ?? 0) > 0) return 'loopback';
  if (deployed !== undefined) return 'none';
  return schedulerElection.value === undefined ? 'unknown' : 'sidecar';
}

/** What the API server does with a new launcher. */
type LauncherReview =
  | { readonly result: 'reviewed' }
  | { readonly result: 'failed'; readonly webhook: string; readonly why: string }
  /** Someone else refused it, possibly before Plumbline's webhook was called. */
  | { readonly result: 'refused'; readonly why: string };

/** Longer than the webhook's own 10 s, after which the API server says which webhook did not answer. */
const REVIEW_SECONDS = 15;
const REVIEW_NAMESPACE = 'default';
const PODS = `/api/v1/namespaces/${REVIEW_NAMESPACE}/pods`;

const OWNER = {
  apiVersion: 'kubevirt.io/v1',
  kind: 'VirtualMachineInstance',
  name: 'plumbline-doctor',
  controller: true,
  uid: '00000000-0000-4000-8000-000000000000',
};
const AMOUNTS = { cpu: '1', memory: '64Mi' };

/** A launcher that asks for whole cores, of a VMI that does not exist: the webhook looks that up and changes nothing. */
const LAUNCHER = {
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: {
    generateName: 'plumbline-doctor-',
    labels: { 'kubevirt.io': 'virt-launcher' },
    annotations: { [names.FULL_PCPUS_ANNOTATION]: names.FULL_PCPUS_ONLY },
    ownerReferences: [OWNER],
  },
  spec: {
    // Accepted in namespaces that enforce the restricted Pod Security Standard, too.
    securityContext: { runAsNonRoot: true, runAsUser: 107, seccompProfile: { type: 'RuntimeDefault' } },
    containers: [
      {
        name: COMPUTE,
        image: 'virt-launcher',
        resources: { requests: AMOUNTS, limits: AMOUNTS },
        securityContext: { allowPrivilegeEscalation: false, capabilities: { drop: ['ALL'] } },
      },
    ],
  },
};

const FAILED_CALL = /failed calling webhook "([^"]+)": (?:failed to call webhook: )?(?:Post "[^"]*": )?(.*)$/s;

/** By a server-side dry run, which stores nothing. */
async function reviewLauncher(client: KubeClient): Promise<LauncherReview> {
  try {
    await client.create(PODS, LAUNCHER, { query: { dryRun: 'All' }, timeout: REVIEW_SECONDS });
    return { result: 'reviewed' };
  } catch (error) {
    if (!(error instanceof KubeError)) throw error;
    const [, webhook = '', why = ''] = FAILED_CALL.exec(error.message) ?? [];
    if (webhook.endsWith('.plumbline.dev')) return { result: 'failed', webhook, why: why.trim() };
    // The API server answers all other requests, so it waits for a webhook.
    if (error.status === 0)
      return { result: 'failed', webhook: names.LAUNCHER_WEBHOOK, why: 'timeout of this command' };
    const isDenied = error.status === 403 && / cannot create resource /.test(error.message);
    return { result: 'refused', why: isDenied ? `you may not create pods in ${REVIEW_NAMESPACE}` : error.message };
  }
}

interface Presented {
  readonly pod: string;
  readonly certificate: X509Certificate;
}

/** The certificate of each replica that answers. @returns `forbidden` without pods/portforward */
async function presentedCertificates(
  { config, requestTimeout }: ClusterAccess,
  pods: Read<readonly objects.SystemPod[]>,
): Promise<Read<readonly Presented[]>> {
  if (pods.missing !== undefined) return pods;
  const replicas = pods.value.filter(({ metadata }) => metadata.labels?.['app.kubernetes.io/name'] === names.WEBHOOK);
  if (replicas.length === 0) return { value: [] };
  const { certificateOfPod, forwardFailure } = await import('../../extender/port-forward.ts');
  const server = `${names.WEBHOOK}.${names.NAMESPACE}.svc`;
  const read = await Promise.all(
    replicas.map(async ({ metadata: { name = '' } }): Promise<readonly Presented[] | 'forbidden'> => {
      const target = { namespace: names.NAMESPACE, pod: name, port: 8443 };
      try {
        return [{ pod: name, certificate: await certificateOfPod(config, target, server, { requestTimeout }) }];
      } catch (error) {
        // A replica that does not answer is the finding of the review and of its readiness.
        return forwardFailure(error).status === 403 ? 'forbidden' : [];
      }
    }),
  );
  return read.includes('forbidden')
    ? { missing: 'forbidden' }
    : { value: read.flatMap((answer) => (answer === 'forbidden' ? [] : answer)) };
}
