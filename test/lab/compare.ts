import { isDeepStrictEqual } from 'node:util';
import type { Admission, ContainerPlacement } from '../../model/kubelet/admission.ts';
import type { DevicePools } from '../../model/kubelet/devices.ts';
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

/** All containers hold the predicted memory of each NUMA node, and the rest is as predicted, too. */
export function sameMemory(a: Snapshot, b: Snapshot): boolean {
  return isDeepStrictEqual(a.memory, b.memory);
}

/** The differences between a prediction and the kubelet's action; empty if there are none. */
export function differences(
  pod: string,
  predicted: Admission,
  verdict: Verdict,
  actual: Snapshot,
  pools: DevicePools,
): string[] {
  const found: string[] = [];
  if (!sameVerdict(verdictOf(predicted), verdict)) found.push('verdict');
  const expected = snapshotOf(predicted.state);
  if (!sameCpus(expected, actual)) found.push('cpus');
  if (predicted.admitted && verdict.admitted) {
    // The kubelet frees the memory of deleted pods only while it admits the next one.
    if (!sameMemory(expected, actual)) found.push('memory');
    const given = actual.devices[pod] ?? {};
    const other = predicted.containers.filter((one) => !sameDevices(one, given[one.name] ?? {}, pools));
    if (other.length > 0) found.push(`devices of ${other.map(({ name }) => name).join(', ')}`);
  }
  return found;
}

/**
 * The kubelet picks at random among equal devices, so only their number is compared, and, if the topology manager chose
 * one NUMA node, how many of them are near it.
 */
function sameDevices(
  { devices, hint }: ContainerPlacement,
  given: Readonly<Record<string, readonly string[]>>,
  pools: DevicePools,
): boolean {
  if (devices.size !== Object.keys(given).length) return false;
  const cell = hint?.length === 1 ? hint[0] : undefined;
  return [...devices].every(([resource, ids]) => {
    const others = given[resource] ?? [];
    const near = (id: string) =>
      cell !== undefined && pools.get(resource)?.devices.some((one) => one.id === id && one.nodes?.includes(cell));
    return others.length === ids.size && others.filter(near).length === [...ids].filter(near).length;
  });
}
