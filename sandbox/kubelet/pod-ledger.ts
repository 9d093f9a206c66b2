import { NODES, PODS } from '../api-server/built-in-types.ts';
import type { LocalClient } from '../clients/local-client.ts';
import type { Pod } from '../objects.ts';
import { shortage } from '../pod-requests.ts';
import type { Managers } from './managers.ts';
import type { Containers, PodWorker } from './pod-worker.ts';

/** The admitted and refused pods of one node. Calls that change it must not overlap. */
export type PodLedger = ReturnType<typeof createPodLedger>;

interface PodLedgerDeps {
  readonly nodeName: string;
  readonly client: LocalClient;
  readonly managers: Managers;
  readonly worker: PodWorker;
  readonly containers: Pick<Containers, 'stop'>;
  readonly onFault: (error: unknown) => void;
}

export function createPodLedger(deps: PodLedgerDeps) {
  const { nodeName, client, managers, worker, containers, onFault } = deps;
  /** Each with the controller that aborts its start. */
  const admitted = new Map<string, { pod: Pod; ending: AbortController }>();
  /** Kept so that later updates do not lead to another admission. */
  const refused = new Set<string>();

  const pods = () => [...admitted.values()].map(({ pod }) => pod);

  const release = async (uid: string) => {
    admitted.get(uid)?.ending.abort();
    admitted.delete(uid);
    refused.delete(uid);
    await containers.stop(uid);
    await managers.release(uid);
  };

  const judge = async (pod: Pod) => {
    const outcome = await managers.admit(pod);
    if (!outcome.admitted) return outcome;
    const devices = managers.state.devices.get(pod.metadata.uid ?? '');
    return shortage(pod, pods(), client.get(NODES, undefined, nodeName), devices);
  };

  return {
    /** The pods that have resources. */
    pods,
    has: (uid: string) => admitted.has(uid),
    /** Stores the newest state of a pod. */
    note(pod: Pod) {
      const entry = admitted.get(pod.metadata.uid ?? '');
      if (entry) entry.pod = pod;
    },
    /** Admits a pod or fails it. A pod that ran before a restart is checked again but not started again. */
    async admit(pod: Pod) {
      const { uid = '', namespace, name } = pod.metadata;
      if (admitted.has(uid) || refused.has(uid)) return;
      const current = client.get(PODS, namespace, name);
      if (current?.metadata.uid !== uid || current.metadata.deletionTimestamp) return;
      const refusal = await judge(pod);
      if (refusal) {
        await managers.release(uid);
        refused.add(uid);
        await worker.reject(pod, refusal.reason, refusal.message);
        return;
      }
      const ending = new AbortController();
      admitted.set(uid, { pod, ending });
      if (pod.status?.phase !== 'Running') worker.start(pod, ending.signal).catch(onFault);
    },
    release,
    /** Releases the resources of pods that were deleted while no kubelet was running. */
    async releaseStale() {
      const known = new Set(client.list(PODS).map(({ metadata }) => metadata.uid));
      const { assignments, devices } = managers.state;
      for (const uid of new Set([...assignments.keys(), ...devices.keys()])) if (!known.has(uid)) await release(uid);
    },
    /** Aborts all starts in progress; pods keep their resources. */
    abandon() {
      for (const { ending } of admitted.values()) ending.abort();
    },
  };
}
