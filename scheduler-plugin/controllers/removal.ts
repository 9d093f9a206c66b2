import { isConflict, isNotFound, type KubeClient, KubeError } from '../../kube/client.ts';
import type { PodView } from '../cluster/pod-view.ts';

/**
 * - evicted, deleted: the API server accepted it.
 * - gone: the pod no longer exists.
 * - changed: the pod has changed since it was read.
 * - refused: by a disruption budget, by KubeVirt, or because the extender may not delete pods.
 * - failed: for any other reason.
 */
export type RemovalOutcome = 'evicted' | 'deleted' | 'gone' | 'changed' | 'refused' | 'failed';

export interface Removal {
  readonly outcome: RemovalOutcome;
  /** The error of a refused or failed removal. */
  readonly error?: unknown;
}

/**
 * virt-api's webhook for pods/eviction, as the API server's error names it (KubeVirt's
 * pkg/virt-operator/resource/generate/components/webhooks.go). It denies with status 429, as a disruption budget does.
 */
const INTERCEPTOR = 'admission webhook "virt-launcher-eviction-interceptor.kubevirt.io" denied the request';

/**
 * Removes a pod that has not started through the Eviction API, so that disruption budgets apply. KubeVirt denies that
 * for launchers whose VM migrates on eviction (evictionStrategy), although a guest that has never started cannot
 * migrate, and for targets of migrations. Such a launcher is deleted, if it has not changed since it was read.
 */
export async function removePod(client: KubeClient, pod: PodView): Promise<Removal> {
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
