import { join } from 'node:path';
import type { PodResourcesClient } from '../../kube/kubelet-api/pod-resources-client.ts';
import type { CniPod } from '../../model/cni/args.ts';
import { hasDpuDevice } from '../../model/cni/decide.ts';
import { type CpuSet, unionOf } from '../../model/cpu-set.ts';
import { CHECKPOINT_FILE, type CheckpointEntry, MOST_CHECKPOINT, parseCheckpoint } from '../assignments/checkpoint.ts';
import { readBounded } from '../files/bounded-file.ts';

/** Seconds that the kubelet may take to say which devices a pod has. With the 2 s of a vacate the shim waits 2.5 s in all. */
const KUBELET_DEADLINE = 0.4;

/** Questions to the kubelet at once: each answer lists every pod of the node, and may have megabytes. */
const MOST_QUESTIONS = 16;

/**
 * The CPUs that a pod owns by itself. The kubelet has written them into its state file before it calls the runtime, so
 * the file is read again: the notice of that write may not have come through yet. When it cannot be read, what was last
 * known counts.
 *
 * @param known the assignments that were last known
 */
export function createPodCpus(kubeletDir: string, known: () => readonly CheckpointEntry[]): (uid: string) => CpuSet {
  const file = join(kubeletDir, CHECKPOINT_FILE);
  let last: { readonly text: string; readonly entries: readonly CheckpointEntry[] } | undefined;
  const entries = () => {
    try {
      const text = readBounded(file, MOST_CHECKPOINT);
      if (last?.text !== text) last = { text, entries: parseCheckpoint(text).entries };
      return last.entries;
    } catch {
      return known();
    }
  };
  return (uid) => unionOf(entries().flatMap(({ podUID, cpus }) => (podUID === uid ? [cpus] : [])));
}

/**
 * Whether a pod holds a device of the DPU, by what the kubelet has given it.
 * @param resources the names of the DPU's resources; empty: every device but Plumbline's own markers is one
 * @returns undefined when the kubelet does not answer or does not know the pod, or is asked by too many at once
 */
export function createDeviceQuestion(client: Pick<PodResourcesClient, 'list'>, resources: ReadonlySet<string>) {
  let asking = 0;
  return async ({ namespace, name }: CniPod): Promise<boolean | undefined> => {
    if (asking >= MOST_QUESTIONS) return undefined;
    asking++;
    try {
      const pods = await client.list({ deadlineSeconds: KUBELET_DEADLINE });
      const pod = pods.find((one) => one.namespace === namespace && one.name === name);
      if (pod === undefined) return undefined;
      const names = pod.containers.flatMap(({ devices }) => devices.map(({ resourceName }) => resourceName));
      return hasDpuDevice(names, resources);
    } catch {
      return undefined;
    } finally {
      asking--;
    }
  };
}
