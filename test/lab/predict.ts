import type { Admission } from '../../model/kubelet/admission.ts';
import type { HostReport } from '../../model/kubelet/host-report.ts';
import { podRequestOf, type RequestingPod } from '../../model/kubelet/pod-request.ts';
import { type PlacementHost, preparedHost, unpredictableFor } from '../../model/placement/needs.ts';
import { differences, sameCpus, sameVerdict, type Verdict, verdictOf } from './compare.ts';
import type { Step } from './play.ts';
import type { RunningPods } from './report.ts';
import { snapshotOf } from './snapshot.ts';

/** Predictions for the next step, from the node's report alone. */
export type Forecast = ReturnType<typeof forecastOf>;

/** @throws Error if the report's kubelet cannot be predicted */
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
    /** The CPUs and the verdict on each pod after a restart of the kubelet. */
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

/** Why no pod is predicted with this report; '' if pods are. */
export function whyUnpredictable(report: HostReport): string {
  const { kubelet } = preparedHost(report);
  return 'unpredictable' in kubelet ? kubelet.unpredictable : '';
}

/** A step with its prediction. */
export interface Comparison {
  /** Empty: none. */
  readonly differences: readonly string[];
  /** Why the kubelet's decision is not predicted, if so. */
  readonly unpredictable?: string;
}

/**
 * The differences between the forecast and a step of the kubelet.
 * @param pods the kubelet's pods before the step
 */
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

/** The kubelet's pods after a step. */
export function podsAfter(pods: RunningPods, step: Step): RunningPods {
  const after = new Map(pods);
  if (step.action === 'create' && step.verdict.admitted) after.set(step.name, step.pod);
  if (step.action === 'delete') after.delete(step.name);
  if (step.action === 'restart') {
    for (const [name, { admitted }] of Object.entries(step.verdicts)) if (!admitted) after.delete(name);
  }
  return after;
}
