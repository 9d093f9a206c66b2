import type { Status } from '../data/wire.ts';
import type { Cluster } from './cluster.ts';
import { type ShownPod, waits } from './pods.ts';
import { nodeContent, podContent, runningEntry } from './records.ts';

/** The content of the page. */
export type Feed = Pick<ReturnType<typeof createFeed>, 'records' | 'complete' | 'watch' | 'viewers'>;

interface FeedOptions {
  readonly cluster: () => Cluster;
  readonly status: () => Status;
}

/** Keys of records: the kind, and the name or uid. */
const keyOf = (kind: 'n' | 'p' | 'r' | 'c', name = '') => `${kind}${name}`;

/** The record of a thing that has no other any more. */
export const endOf = (key: string): string => JSON.stringify([key.slice(0, 1), key.slice(1)]);

/** A feed, and the callbacks of the cluster's watches. It collects changes, and `look` writes them. */
export function createFeed({ cluster, status }: FeedOptions) {
  const viewers = new Set<(keys: Iterable<string>) => void>();
  /** By uid, and by the uid in the report of their node. */
  const pods = new Map<string, ShownPod>();
  const reported = new Map<string, ShownPod>();
  const dirtyNodes = new Set<string>();
  const dirtyPods = new Set<string>();
  const records = new Map<string, string>();
  const changed = new Set<string>();
  let complete = false;

  /** @param content undefined: the thing has no record */
  const write = (key: string, content: unknown): void => {
    const json = content === undefined ? undefined : JSON.stringify(content);
    if (records.get(key) === json) return;
    if (json === undefined) records.delete(key);
    else records.set(key, json);
    changed.add(key);
  };

  const noteChange = (pod: ShownPod): void => {
    dirtyPods.add(pod.uid);
    // The node's record names its pods.
    const node = targetOf(pod);
    if (node !== undefined) dirtyNodes.add(node);
  };

  const writeNode = (name: string, there: readonly ShownPod[]): void => {
    const coming = there.filter(({ pending }) => pending).sort(byAge);
    const content = nodeContent(name, cluster(), (uid) => reported.get(uid), coming);
    write(keyOf('n', name), content && ['n', name, content]);
    // The node's report may say that the agent refused a pod's start.
    for (const { uid } of coming) dirtyPods.add(uid);
    for (const pod of there) {
      const entry = pod.pending || pod.running === undefined ? undefined : runningEntry(pod, cluster());
      write(keyOf('r', pod.uid), entry && ['r', pod.uid, entry]);
    }
  };

  const writePod = (uid: string): void => {
    const pod = pods.get(uid);
    const refusal = pod && refusalOf(pod, cluster());
    write(keyOf('p', uid), pod && waits(pod, refusal) ? ['p', uid, podContent(pod, refusal)] : undefined);
    if (pod?.running === undefined) write(keyOf('r', uid), undefined);
  };

  return {
    /** The newest record of each thing as JSON, by key. */
    records: records as ReadonlyMap<string, string>,
    /** Whether all records were written once. */
    get complete() {
      return complete;
    },
    /** Calls back with the keys of new, changed and removed records, until the returned function is called. */
    watch(onNews: (keys: Iterable<string>) => void) {
      viewers.add(onNews);
      return () => void viewers.delete(onNews);
    },
    get viewers() {
      return viewers.size;
    },
    listeners: {
      node: (name: string) => void dirtyNodes.add(name),
      pod(before: ShownPod | undefined, after: ShownPod | undefined) {
        for (const pod of [before, after]) if (pod !== undefined) noteChange(pod);
        if (before) {
          pods.delete(before.uid);
          reported.delete(before.kubeletUid);
        }
        if (after) {
          pods.set(after.uid, after);
          reported.set(after.kubeletUid, after);
        }
      },
    },
    /** Writes records of the changes since the last call. */
    look() {
      const wasComplete = complete;
      const now = status();
      const there = new Map([...dirtyNodes].map((name): [string, ShownPod[]] => [name, []]));
      if (there.size > 0) for (const pod of pods.values()) there.get(targetOf(pod) ?? '')?.push(pod);
      for (const [name, of] of there) writeNode(name, of);
      dirtyNodes.clear();
      for (const uid of dirtyPods) writePod(uid);
      dirtyPods.clear();
      write(keyOf('c'), ['c', now]);
      complete ||= now.missing === undefined;
      if (changed.size === 0 && complete === wasComplete) return;
      for (const viewer of viewers) viewer(changed);
      changed.clear();
    },
  };
}

/** The node that a pod is on, or is nominated to. */
const targetOf = ({ node, nominated }: ShownPod): string | undefined => node ?? nominated;

const byAge = (a: ShownPod, b: ShownPod): number =>
  Number((a.since ?? '') > (b.since ?? '')) - Number((a.since ?? '') < (b.since ?? '')) || (a.uid < b.uid ? -1 : 1);

/** Why the agent of the pod's node refused its start. */
function refusalOf({ node, uid, namespace, name }: ShownPod, { reports }: Pick<Cluster, 'reports'>) {
  const refusal = reports.get(node ?? '')?.refusals.find((one) => one.podName === name && one.namespace === namespace);
  return refusal === undefined || (refusal.podUID ?? uid) !== uid ? undefined : refusal.message;
}
