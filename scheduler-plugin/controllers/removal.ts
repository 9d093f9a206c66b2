import { isConflict, isNotFound, type KubeClient, KubeError } from '../../kube/client.ts';
import type { PodView } from '../cluster/pod-view.ts';

/** refused: by a disruption budget, by KubeVirt, or for lack of permission; changed: since the pod was read. */
export type RemovalOutcome = 'evicted' | 'deleted' | 'gone' | 'changed' | 'refused' | 'failed';

export interface Removal {
  readonly outcome: RemovalOutcome;
  readonly error?: unknown;
}

/** In KubeVirt's pkg/virt-operator/resource/generate/components/webhooks.go; with status 429. */
const INTERCEPTOR = 'admission webhook "virt-launcher-eviction-interceptor.kubevirt.io" denied the request';

/**
 * Through the Eviction API, so that disruption budgets apply. KubeVirt denies that for launchers whose VM migrates on
 * eviction and for targets of migrations, also if the guest never started: such a launcher is deleted, if unchanged.
 */
export async function removeUnstarted(client: KubeClient, pod: PodView): Promise<Removal> {
  const evicted = await attempt('evicted', () => evict(client, pod));
  const isDenied = evicted.error instanceof KubeError && evicted.error.message.includes(INTERCEPTOR);
  if (!isDenied || !pod.launcher || !pod.pending) return evicted;
  return attempt('deleted', () => remove(client, pod));
}

/** The precondition on the uid protects a later pod of the same name. */
function evict(client: KubeClient, { namespace, name, uid }: PodView): Promise<unknown> {
  return client.create(`/api/v1/namespaces/${namespace}/pods/${name}/eviction`, {
    apiVersion: 'policy/v1',
    kind: 'Eviction',
    metadata: { name, namespace },
    deleteOptions: { preconditions: { uid } },
  });
}

/** The precondition on the version protects a launcher that has started in the meantime. */
function remove(client: KubeClient, { namespace, name, uid, version }: PodView): Promise<unknown> {
  const preconditions = { uid, resourceVersion: version };
  return client.delete(`/api/v1/namespaces/${namespace}/pods/${name}`, {
    body: { apiVersion: 'v1', kind: 'DeleteOptions', preconditions },
  });
}

async function attempt(done: RemovalOutcome, call: () => Promise<unknown>): Promise<Removal> {
  try {
    await call();
    return { outcome: done };
  } catch (error) {
    if (isNotFound(error)) return { outcome: 'gone' };
    if (isConflict(error)) return { outcome: 'changed' };
    const isRefused = error instanceof KubeError && (error.status === 429 || error.status === 403);
    return { outcome: isRefused ? 'refused' : 'failed', error };
  }
}
