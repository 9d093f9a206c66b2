import type { PodResources } from '../../kube/kubelet-api/gen/pod-resources.ts';
import { CpuSet } from '../../model/cpu-set.ts';
import { groupBy } from '../../model/lists.ts';
import type { CheckpointEntry } from './checkpoint.ts';

export interface PodName {
  readonly namespace: string;
  readonly podName: string;
}

/** A container as PodResources names it, without the uid of its pod, and its exclusive CPUs. */
export interface ListedContainer extends PodName {
  readonly container: string;
  readonly cpus: CpuSet;
}

/** @throws RangeError if an id is not a CPU id, or there are more containers than `most` */
export function listedContainers(pods: readonly PodResources[], most: number): ListedContainer[] {
  const holders = pods.flatMap(({ namespace, name: podName, containers }) =>
    containers.filter(({ cpuIds }) => cpuIds.length > 0).map((container) => ({ namespace, podName, container })),
  );
  // Check before creating any set: a few bytes can expand to a set of kilobytes.
  if (holders.length > most) {
    throw new RangeError(`the kubelet lists ${holders.length} containers with CPUs; the agent reads at most ${most}`);
  }
  return holders.map(({ namespace, podName, container: { name: container, cpuIds } }) => {
    return { namespace, podName, container, cpus: CpuSet.of(cpuIds) };
  });
}

/**
 * Finds the names that belong to the uids of the checkpoint. A container's name and its CPUs identify the pod if
 * exactly one entry and one listed container share them; where two match, neither gets a name. A uid keeps its name,
 * since pods are not renamed, and loses it with its last entry.
 */
export function joinNames(
  entries: readonly CheckpointEntry[],
  listed: readonly ListedContainer[],
  previous: ReadonlyMap<string, PodName>,
): ReadonlyMap<string, PodName> {
  const keyOf = ({ container, cpus }: CheckpointEntry | ListedContainer) => `${container} ${cpus}`;
  const listedByKey = groupBy(listed, keyOf);
  const nameOfUid = new Map<string, PodName>();
  for (const { podUID } of entries) {
    const name = previous.get(podUID);
    if (name !== undefined) nameOfUid.set(podUID, name);
  }
  for (const [key, [entry, ...others]] of groupBy(entries, keyOf)) {
    const [container, ...more] = listedByKey.get(key) ?? [];
    if (entry === undefined || container === undefined || others.length > 0 || more.length > 0) continue;
    const { namespace, podName } = container;
    if (!nameOfUid.has(entry.podUID)) nameOfUid.set(entry.podUID, { namespace, podName });
  }
  return nameOfUid;
}
