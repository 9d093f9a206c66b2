import { isDeepStrictEqual } from 'node:util';
import type { Admission, ContainerPlacement } from '../../model/kubelet/admission.ts';
import type { DevicePools } from '../../model/kubelet/devices.ts';
import { nodesOfDevice } from './devices.ts';
import { type Snapshot, snapshotOf } from './snapshot.ts';

/** A kubelet's answer, as it writes it to pod.status. */
export type Verdict =
  | { readonly admitted: true }
  | { readonly admitted: false; readonly reason: string; readonly message: string };

/** The start of the kubelet's message for a refused pod. Source: pkg/kubelet/kubelet.go, rejectPod. */
const REJECTED = 'Pod was rejected: ';

/** The verdict of a prediction. */
export function verdictOf(admission: Admission): Verdict {
  if (admission.admitted) return { admitted: true };
  return { admitted: false, reason: admission.reason, message: REJECTED + admission.message };
}

export function sameVerdict(a: Verdict, b: Verdict): boolean {
  if (a.admitted || b.admitted) return a.admitted === b.admitted;
  return a.reason === b.reason && a.message === b.message;
}

/** All CPUs of all pods are as predicted, and also the shared pool. */
export function sameCpus(a: Snapshot, b: Snapshot): boolean {
  return a.defaultSet === b.defaultSet && JSON.stringify(a.cpus) === JSON.stringify(b.cpus);
}

/**
 * The pod has the predicted memory of each NUMA node, and the rest is as predicted, too. A report does not name the
 * owners of the rest.
 */
export function sameMemory(pod: string, predicted: Snapshot, actual: Snapshot): boolean {
  const [expected, memory] = [predicted.memory, actual.memory];
  if (expected === undefined || memory === undefined) return expected === memory;
  return isDeepStrictEqual(expected.cells, memory.cells) && isDeepStrictEqual(expected.blocks[pod], memory.blocks[pod]);
}

/** The differences between a prediction and the kubelet's action; empty if there are none. */
export function differences(pod: string, predicted: Admission, verdict: Verdict, actual: Snapshot): string[] {
  const differing: string[] = [];
  if (!sameVerdict(verdictOf(predicted), verdict)) differing.push('verdict');
  const expected = snapshotOf(predicted.state);
  if (!sameCpus(expected, actual)) differing.push('cpus');
  if (!predicted.admitted || !verdict.admitted) return differing;
  // The kubelet frees the memory of deleted pods only while it admits the next one.
  if (!sameMemory(pod, expected, actual)) differing.push('memory');
  const devices = actual.devices[pod] ?? {};
  const others = predicted.containers.filter(
    (container) => !sameDevices(container, devices[container.name] ?? {}, predicted.state.pools),
  );
  if (others.length > 0) differing.push(`devices of ${others.map(({ name }) => name).join(', ')}`);
  return differing;
}

/**
 * The kubelet picks at random among equal devices, so only their number is compared, and, if the topology manager chose
 * one NUMA node, how many of them are near it.
 */
function sameDevices(
  { devices, hint }: ContainerPlacement,
  actual: Readonly<Record<string, readonly string[]>>,
  pools: DevicePools,
): boolean {
  if (devices.size !== Object.keys(actual).length) return false;
  const cell = hint?.length === 1 ? hint[0] : undefined;
  const near = (nodes: readonly number[] | undefined) => cell !== undefined && nodes?.includes(cell);
  return [...devices].every(([resource, ids]) => {
    const actualIds = actual[resource] ?? [];
    const expected = pools.get(resource)?.devices.filter(({ id, nodes }) => ids.has(id) && near(nodes)) ?? [];
    const real = actualIds.filter((id) => near(nodesOfDevice(resource, id)));
    return actualIds.length === ids.size && real.length === expected.length;
  });
}
