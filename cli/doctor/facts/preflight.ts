import * as z from 'zod';
import { type KubeClient, KubeError } from '../../../kube/client.ts';
import { isDpuHost, NODES_PATH } from '../../../kube/cluster-view/nodes.ts';
import { DPU_LEASE_NAMESPACE, NAMESPACE } from '../../../model/names.ts';
import { KUBEVIRTS } from '../../support/kinds.ts';
import { named, type Read, readAll, readOne, tolerant } from '../../support/lists.ts';
import { apiVersion, deployment } from '../../support/objects.ts';

export type PreflightFacts = Awaited<ReturnType<typeof readPreflight>>;

const kubeletSettings = z
  .object({
    kubeletconfig: z.object({
      cpuManagerPolicy: z.string().default('none'),
      cpuManagerPolicyOptions: z.record(z.string(), z.string()).default({}),
      topologyManagerPolicy: z.string().default('none'),
    }),
  })
  .transform(({ kubeletconfig }) => kubeletconfig);
export type KubeletSettings = z.infer<typeof kubeletSettings>;

const MAX_KUBELETS = 50;
const CONCURRENT_KUBELETS = 8;
const KUBELET_TIMEOUT_SECONDS = 5;

const ADMISSION = ['mutatingwebhookconfigurations', 'validatingwebhookconfigurations'];
const POLICIES = ['validatingadmissionpolicies', 'validatingadmissionpolicybindings'];

/** Kinds in the manifests, by group. Server-side apply needs `create` and `patch`. */
const ACTIONS: readonly (readonly [group: string, resources: readonly string[], namespace?: string])[] = [
  ['', ['namespaces']],
  ['apiextensions.k8s.io', ['customresourcedefinitions']],
  ['rbac.authorization.k8s.io', ['clusterroles', 'clusterrolebindings']],
  ['admissionregistration.k8s.io', [...ADMISSION, ...POLICIES]],
  ['scheduling.k8s.io', ['priorityclasses']],
  ['', ['services', 'serviceaccounts', 'configmaps'], NAMESPACE],
  ['apps', ['deployments', 'daemonsets'], NAMESPACE],
  ['rbac.authorization.k8s.io', ['roles', 'rolebindings'], NAMESPACE],
  ['networking.k8s.io', ['networkpolicies'], NAMESPACE],
  ['policy', ['poddisruptionbudgets'], NAMESPACE],
  ['cert-manager.io', ['issuers', 'certificates'], NAMESPACE],
];
const REVIEWS = { apiVersion: 'authorization.k8s.io/v1', kind: 'SelfSubjectAccessReview' };
const REVIEWS_PATH = '/apis/authorization.k8s.io/v1/selfsubjectaccessreviews';

const groupList = z.object({ groups: z.array(z.object({ name: z.string() })) });

/** @throws KubeError if the cluster cannot be queried at all */
export async function readPreflight(client: KubeClient) {
  const { groups: served } = groupList.parse(await client.get('/apis'));
  const groups: ReadonlySet<string> = new Set(served.map(({ name }) => name));
  const isInjector = { labelSelector: 'app.kubernetes.io/component=cainjector' };
  const [version, nodes, injectors, kubevirts, denied] = await Promise.all([
    tolerant(readOne(client, '/version', apiVersion).then((answer) => answer?.gitVersion)),
    tolerant(readAll(client, NODES_PATH, named)),
    tolerant(readAll(client, '/apis/apps/v1/deployments', deployment, isInjector)),
    tolerant(readAll(client, ...KUBEVIRTS)),
    deniedOf(client, groups),
  ]);
  const hasDpus = nodes.value?.some(isDpuHost) === true;
  /** Undefined if no node has a DPU. */
  const dpuNamespace: Read<unknown> | undefined = hasDpus
    ? await tolerant(readOne(client, `/api/v1/namespaces/${DPU_LEASE_NAMESPACE}`, z.unknown()))
    : undefined;
  /** By node; in large clusters only for some of the nodes. */
  const names = (nodes.value ?? []).map(({ metadata }) => metadata.name ?? '');
  const kubelets: ReadonlyMap<string, Read<KubeletSettings>> = await readKubelets(client, names);
  return { version, groups, nodes, kubelets, injectors, kubevirts, dpuNamespace, denied };
}

/** `create clusterroles.rbac.authorization.k8s.io`; only for served groups: a missing one is a separate finding. */
async function deniedOf(client: KubeClient, groups: ReadonlySet<string>): Promise<string[]> {
  const denied = async (group: string, resource: string, verb: string, namespace?: string) => {
    const resourceAttributes = { group, resource, verb, ...(namespace !== undefined && { namespace }) };
    const review = await client.create(REVIEWS_PATH, { ...REVIEWS, spec: { resourceAttributes } });
    const { status } = review as { status?: { allowed?: boolean } };
    return status?.allowed === true ? [] : [`${verb} ${resource}${group === '' ? '' : `.${group}`}`];
  };
  const reviews = ACTIONS.filter(([group]) => group === '' || groups.has(group)).flatMap(
    ([group, resources, namespace]) =>
      resources.flatMap((resource) => ['create', 'patch'].map((verb) => denied(group, resource, verb, namespace))),
  );
  return (await Promise.all(reviews)).flat();
}

async function readKubelets(client: KubeClient, names: readonly string[]): Promise<Map<string, Read<KubeletSettings>>> {
  const settings = new Map<string, Read<KubeletSettings>>();
  const left = names.slice(0, MAX_KUBELETS);
  const worker = async () => {
    for (let name = left.shift(); name !== undefined; name = left.shift()) {
      settings.set(name, await readKubelet(client, name));
    }
  };
  await Promise.all(Array.from({ length: CONCURRENT_KUBELETS }, worker));
  return settings;
}

/** A kubelet that does not respond counts as absent. */
async function readKubelet(client: KubeClient, name: string): Promise<Read<KubeletSettings>> {
  const path = `/api/v1/nodes/${encodeURIComponent(name)}/proxy/configz`;
  try {
    return { value: kubeletSettings.parse(await client.get(path, { timeout: KUBELET_TIMEOUT_SECONDS })) };
  } catch (error) {
    if (!(error instanceof KubeError || error instanceof z.ZodError)) throw error;
    return { missing: error instanceof KubeError && error.status === 403 ? 'forbidden' : 'absent' };
  }
}
