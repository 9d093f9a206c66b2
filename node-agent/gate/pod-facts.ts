import { join } from 'node:path';
import type { PodResourcesClient } from '../../kube/kubelet-api/pod-resources-client.ts';
import { type CniPod, hasDpuDevice } from '../../model/cni/decide.ts';
import { type CpuSet, unionOf } from '../../model/cpu-set.ts';
import { CHECKPOINT_FILE, type CheckpointEntry, MOST_CHECKPOINT, parseCheckpoint } from '../assignments/checkpoint.ts';
import { readBounded } from '../files/bounded-file.ts';

/**
 * Deadline in seconds for the kubelet's list of a pod's devices. Including the 2 s of a vacate, the shim waits 2.5 s.
 */
const KUBELET_DEADLINE = 0.4;

/** Maximum concurrent queries to the kubelet: each answer lists every pod of the node and may have megabytes. */
const MOST_QUESTIONS = 16;

/**
 * Returns the CPUs that a pod owns exclusively. The kubelet writes them into its state file before it calls the
 * runtime, so the file is read again: the event of that write may still be pending. If the file cannot be read, the
 * last known CPUs are used.
 *
 * @param known the last known assignments
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
 * Whether a pod holds a device of the DPU, according to the kubelet.
 *
 * @returns undefined when the kubelet does not answer, does not know the pod, or has too many queries already
 */
export function createDeviceQuestion(client: Pick<PodResourcesClient, 'list'>) {
  let asking = 0;
  return async ({ namespace, name }: CniPod): Promise<boolean | undefined> => {
    if (asking >= MOST_QUESTIONS) return undefined;
    asking++;
    try {
      const pods = await client.list({ deadlineSeconds: KUBELET_DEADLINE });
      const pod = pods.find((one) => one.namespace === namespace && one.name === name);
      if (pod === undefined) return undefined;
      const names = pod.containers.flatMap(({ devices }) => devices.map(({ resourceName }) => resourceName));
      return hasDpuDevice(names);
    } catch {
      return undefined;
    } finally {
      asking--;
    }
  };
}
