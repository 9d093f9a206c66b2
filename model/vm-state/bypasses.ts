import { wantsWholeCores } from '../launcher/annotation.ts';
import { recognizeLauncher } from '../launcher/recognize.ts';
import { DECISION_ANNOTATION, MANAGED_RESOURCES, PLACED_RESOURCE, SCHEDULER } from '../names.ts';
import type { PlacementNeeds } from '../placement/needs.ts';
import { isExclusive } from '../placement/pod-needs.ts';
import { type Named, startAgain } from './common-remedies.ts';
import type { Cause, StatePod, VmFacts } from './facts.ts';
import { plumbline, remedy } from './remedy.ts';

const DEFAULT_SCHEDULER = 'default-scheduler';

export const schedulerOf = ({ spec }: StatePod): string => spec.schedulerName || DEFAULT_SCHEDULER;

/** What shows that a part of Plumbline never saw the pod. */
export function bypassesOf(facts: VmFacts, pod: StatePod, needs: PlacementNeeds): Cause[] {
  const exclusive = isExclusive(needs);
  const masked = needs.mask !== undefined;
  return [
    ...unseen(facts, pod, needs),
    ...(exclusive || masked ? unasked(facts, pod) : []),
    // A mask is for VMs without dedicated CPUs.
    ...(pod.metadata.labels?.['kubevirt.io'] === 'virt-launcher' && !exclusive && !masked ? [SHARED] : []),
  ];
}

const SHARED: Cause = {
  reason: 'SharedCpus',
  text: 'this VM has no dedicated CPUs, so Plumbline neither pads nor places it',
  remedies: [
    remedy(
      'dedicate-cpus',
      'set dedicatedCpuPlacement, isolateEmulatorThread and equal requests and limits if it should have its own',
    ),
  ],
};

/** A launcher that asks for whole cores always has a decision; one with CPUs in it has them as the decision says. */
function unseen(named: Named, pod: StatePod, needs: PlacementNeeds): Cause[] {
  if (recognizeLauncher(pod).kind !== 'launcher' || !isExclusive(needs) || !wantsWholeCores(pod.metadata)) return [];
  const decision = pod.metadata.annotations?.[DECISION_ANNOTATION];
  const odd = needs.request.containers.find(({ kind, cpus }) => kind !== 'init' && cpus % 2 !== 0);
  // A decision without CPUs says why they are left as they are.
  if (decision !== undefined && !(odd && decision.startsWith('{"cpus":'))) return [];
  const what = odd ? `${odd.name} asks for ${odd.cpus} CPUs, no whole cores` : 'its decision is not written on it';
  return [
    {
      reason: 'WebhookMissed',
      text: `the webhook did not see this launcher: ${what}`,
      remedies: [startAgain(named, 'start the VM again once the webhook works', plumbline('doctor', 'webhook'))],
    },
  ];
}

/**
 * The scheduler of the pod does not ask the extender. Where a scheduler of Plumbline's own runs, that one asks about each of
 * its pods; the cluster's own, where it is configured to ask, does so for pods that request a managed resource.
 */
function unasked(facts: VmFacts, pod: StatePod): Cause[] {
  const scheduler = schedulerOf(pod);
  if (scheduler === SCHEDULER || pod.spec.nodeName) return [];
  if (facts.scheduler?.leads === true) {
    const launcher = recognizeLauncher(pod).kind === 'launcher';
    const remedies = [
      launcher
        ? startAgain(facts, 'start the VM again, without a scheduler of its own in its template')
        : remedy('name-scheduler', `create the pod again with schedulerName: ${SCHEDULER}`),
    ];
    const text = `its scheduler is ${scheduler}, which does not ask the extender unless you configured it to`;
    return [{ reason: scheduler === DEFAULT_SCHEDULER ? 'ExtenderNotAsked' : 'OtherScheduler', text, remedies }];
  }
  const containers = [...pod.spec.containers, ...(pod.spec.initContainers ?? [])];
  const managed = ({ resources }: (typeof containers)[number]) =>
    MANAGED_RESOURCES.some(
      (name) => resources?.requests?.[name] !== undefined || resources?.limits?.[name] !== undefined,
    );
  if (containers.some(managed)) return [];
  const text = 'kube-scheduler does not ask Plumbline about this pod: it requests none of the managed resources';
  return [{ reason: 'ExtenderNotAsked', text, remedies: [remedy('opt-in', `have it request ${PLACED_RESOURCE}: 1`)] }];
}
