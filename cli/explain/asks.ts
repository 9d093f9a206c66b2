import { briefMask } from '../../model/cpu-mask/mask.ts';
import { wantsWholeCores } from '../../model/launcher/annotation.ts';
import { startsRunning } from '../../model/launcher/paused-start.ts';
import { recognizeLauncher } from '../../model/launcher/recognize.ts';
import {
  CPU_MASK_START_ANNOTATION,
  DECISION_ANNOTATION,
  MANAGED_RESOURCES,
  PLACED_RESOURCE,
  SCHEDULER,
} from '../../model/names.ts';
import { isExclusive, placementNeedsOf } from '../../model/placement/pod-needs.ts';
import type { ExplainedPod } from './objects.ts';
import { schedulerOf } from './scheduler.ts';

/** What a pod asks for, in words, with what Plumbline's webhook made of it. */
export function asksOf(pod: ExplainedPod): string[] {
  const { request, mask, networks, wholeCores } = placementNeedsOf(pod);
  const cpus = request.containers.filter((one) => one.cpus > 0);
  const padding = paddingOf(pod);
  const owned = cpus.map(({ name, cpus: count }) => `${count} CPUs of its own for ${name}`).join(', ');
  const asks = [cpus.length === 0 ? 'no CPUs of its own' : owned];
  if (padding > 0) asks[0] += ` (${padding} of them to fill whole cores)`;
  if (wholeCores) asks.push('whole cores');
  if (mask) {
    const otherwise = mask.fixMismatch ? ', or all CPUs of a node that lacks some' : '';
    const late = startsRunning(pod.metadata) ? `, set once it runs (${CPU_MASK_START_ANNOTATION}: running)` : '';
    asks.push(`the CPU mask ${briefMask(mask.mask)}${otherwise}${late}`);
  }
  for (const { kind, physnet, affinity } of networks) {
    asks.push(`CPUs near ${kind === 'tunnel' ? 'the tunnel' : `physnet ${physnet}`} (${affinity})`);
  }
  return asks;
}

function paddingOf({ metadata }: ExplainedPod): number {
  try {
    const decision = JSON.parse(metadata.annotations?.[DECISION_ANNOTATION] ?? '{}') as { padding?: unknown };
    return typeof decision.padding === 'number' ? decision.padding : 0;
  } catch {
    return 0;
  }
}

export interface Bypass {
  readonly cause: string;
  readonly help: string;
}

/**
 * What shows that a part of Plumbline never saw the pod.
 * @param sidecar whether a scheduler of Plumbline's own runs, which asks the extender about each of its pods. The
 * cluster's own scheduler, where it is configured to ask, does so for pods that request a managed resource.
 */
export function bypassesOf(pod: ExplainedPod, sidecar?: boolean): Bypass[] {
  const found: Bypass[] = [];
  const needs = placementNeedsOf(pod);
  const launcher = recognizeLauncher(pod).kind === 'launcher';
  const exclusive = isExclusive(needs);
  if (launcher && exclusive && wantsWholeCores(pod.metadata)) {
    const decision = pod.metadata.annotations?.[DECISION_ANNOTATION];
    const odd = needs.request.containers.find(({ kind, cpus }) => kind !== 'init' && cpus % 2 !== 0);
    // A decision without CPUs says why they are left as they are.
    if (decision === undefined || (odd && decision.startsWith('{"cpus":'))) {
      const what = odd ? `${odd.name} asks for ${odd.cpus} CPUs, no whole cores` : 'its decision is not written on it';
      found.push({
        cause: `the webhook did not see this launcher: ${what}`,
        help: 'start the VM anew once the webhook works (plumbline doctor says what is wrong with it)',
      });
    }
  }
  const masked = needs.mask !== undefined;
  if (exclusive || masked) found.push(...unasked(pod, sidecar));
  // A mask is for VMs without dedicated CPUs.
  if (pod.metadata.labels?.['kubevirt.io'] === 'virt-launcher' && !exclusive && !masked) {
    found.push({
      cause: 'this VM has no dedicated CPUs, so Plumbline neither pads nor places it',
      help: 'set dedicatedCpuPlacement, isolateEmulatorThread and equal requests and limits if it should have its own',
    });
  }
  return found;
}

/** The scheduler of the pod does not ask the extender. */
function unasked(pod: ExplainedPod, sidecar: boolean | undefined): Bypass[] {
  const scheduler = schedulerOf(pod);
  if (scheduler === SCHEDULER) return [];
  if (sidecar === true) {
    if (pod.spec.nodeName) return [];
    const launcher = recognizeLauncher(pod).kind === 'launcher';
    const help = launcher ? 'start the VM again' : `create the pod again with schedulerName: ${SCHEDULER}`;
    return [
      { cause: `its scheduler is ${scheduler}, which does not ask the extender unless you configured it to`, help },
    ];
  }
  const asked = [...pod.spec.containers, ...(pod.spec.initContainers ?? [])].some(({ resources }) =>
    MANAGED_RESOURCES.some(
      (name) => resources?.requests?.[name] !== undefined || resources?.limits?.[name] !== undefined,
    ),
  );
  if (asked) return [];
  const cause = 'kube-scheduler does not ask Plumbline about this pod: it requests none of the managed resources';
  return [{ cause, help: `have it request ${PLACED_RESOURCE}: 1` }];
}
