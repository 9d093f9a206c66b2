import { isDeepStrictEqual } from 'node:util';
import type { Admission, ContainerPlacement } from '../../model/kubelet/admission.ts';
import type { DevicePools } from '../../model/kubelet/devices.ts';
import type { HostReport } from '../../model/kubelet/host-report.ts';
import { podRequestOf, type RequestingPod } from '../../model/kubelet/pod-request.ts';
import { type PlacementHost, preparedHost, unpredictableFor } from '../../model/placement/needs.ts';
import { nodesOfDevice } from './devices.ts';
import type { Step } from './play.ts';
import type { RunningPods } from './report.ts';
import { type Snapshot, snapshotOf } from './snapshot.ts';

/** A kubelet's answer, as it writes it to pod.status. */
export type Verdict =
  | { readonly admitted: true }
  | { readonly admitted: false; readonly reason: string; readonly message: string };

/** The start of the kubelet's message for a refused pod. Source: pkg/kubelet/kubelet.go, rejectPod. */
const REJECTED = 'Pod was rejected: ';

function verdictOf(admission: Admission): Verdict {
  if (admission.admitted) return { admitted: true };
  return { admitted: false, reason: admission.reason, message: REJECTED + admission.message };
}

function sameVerdict(a: Verdict, b: Verdict): boolean {
  if (a.admitted || b.admitted) return a.admitted === b.admitted;
  return a.reason === b.reason && a.message === b.message;
}

export function sameCpus(a: Snapshot, b: Snapshot): boolean {
  return a.defaultSet === b.defaultSet && JSON.stringify(a.cpus) === JSON.stringify(b.cpus);
}

/** As predicted: the pod's memory of each NUMA node, and the rest, whose owners a report does not name. */
export function sameMemory(pod: string, predicted: Snapshot, actual: Snapshot): boolean {
  const [expected, memory] = [predicted.memory, actual.memory];
  if (expected === undefined || memory === undefined) return expected === memory;
  return isDeepStrictEqual(expected.cells, memory.cells) && isDeepStrictEqual(expected.blocks[pod], memory.blocks[pod]);
}

/** The differences between a prediction and the kubelet's action; empty if there are none. */
function differences(pod: string, predicted: Admission, verdict: Verdict, actual: Snapshot): string[] {
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

/** The kubelet picks among equal devices, so their number counts, and how many are near the chosen NUMA node. */
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

export type Forecast = ReturnType<typeof forecastOf>;

export function forecastOf(report: HostReport) {
  const node: PlacementHost = preparedHost(report);
  const { kubelet, state } = node;
  if ('unpredictable' in kubelet || state === undefined) throw new Error(whyUnpredictable(report));
  return {
    state,
    /** The kubelet's decision about a new pod, or why it is not predicted. */
    admit(name: string, pod: RequestingPod): Admission | { readonly unpredictable: string } {
      const request = podRequestOf(pod, name);
      const unpredictable = unpredictableFor({ request, networks: [] }, node);
      return unpredictable === undefined ? kubelet.admit(state, request) : { unpredictable };
    },
    /** The state after the pod is deleted. Only its CPUs are predicted: a report has no owners of devices and memory. */
    without: (name: string) => kubelet.remove(state, name),
    restart(pods: ReadonlyMap<string, RequestingPod>) {
      const verdicts: Record<string, Verdict> = {};
      let after = state;
      for (const [name, pod] of pods) {
        // The kubelet keeps devices and memory of running containers. A refused pod's CPUs are freed only once it
        // knows all its pods: each is judged among all others.
        const { containers, ...request } = podRequestOf(pod, name);
        const cpusOnly = containers.map((container) => ({ ...container, devices: new Map(), memory: new Map() }));
        const admission = kubelet.admit(state, { ...request, containers: cpusOnly });
        verdicts[name] = verdictOf(admission);
        if (!admission.admitted) after = kubelet.remove(after, name);
      }
      return { verdicts, state: after };
    },
  };
}

export function whyUnpredictable(report: HostReport): string {
  const { kubelet } = preparedHost(report);
  return 'unpredictable' in kubelet ? kubelet.unpredictable : '';
}

export interface Comparison {
  readonly differences: readonly string[];
  readonly unpredictable?: string;
}

/** The differences between the forecast and a step. @param pods the kubelet's pods before the step */
export function compareStep(forecast: Forecast, step: Step, pods: RunningPods): Comparison {
  switch (step.action) {
    case 'create': {
      const predicted = forecast.admit(step.name, step.pod);
      if ('unpredictable' in predicted) return { differences: [], ...predicted };
      return { differences: differences(step.name, predicted, step.verdict, step.actual) };
    }
    case 'delete':
      return { differences: sameCpus(snapshotOf(forecast.without(step.name)), step.actual) ? [] : ['cpus'] };
    case 'restart': {
      const predicted = forecast.restart(pods);
      const differing = Object.entries(predicted.verdicts)
        .filter(([name, verdict]) => !sameVerdict(verdict, step.verdicts[name] ?? { admitted: true }))
        .map(([name]) => `verdict on ${name}`);
      const isSame = sameCpus(snapshotOf(predicted.state), step.actual);
      return { differences: isSame ? differing : [...differing, 'cpus'] };
    }
  }
}

export function podsAfter(pods: RunningPods, step: Step): RunningPods {
  const after = new Map(pods);
  if (step.action === 'create' && step.verdict.admitted) after.set(step.name, step.pod);
  if (step.action === 'delete') after.delete(step.name);
  if (step.action === 'restart') {
    for (const [name, { admitted }] of Object.entries(step.verdicts)) if (!admitted) after.delete(name);
  }
  return after;
}
