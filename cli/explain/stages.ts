import { wantsWholeCores } from '../../model/launcher/annotation.ts';
import { DPU_READY_CONDITION, FULL_PCPUS_ANNOTATION, FULL_PCPUS_ONLY } from '../../model/names.ts';
import type { Finding } from './explanation.ts';
import {
  type ExplainedNode,
  type ExplainedPod,
  type ExplainedVm,
  type ExplainedVmi,
  type Occurrence,
  timeOf,
} from './objects.ts';
import { schedulerOf } from './scheduler.ts';
import type { Subject } from './subject.ts';

/** Stages at which no node has to be looked at: what the objects themselves say is the answer. */

/**
 * A VM that has no launcher.
 * @param now milliseconds since 1970
 */
export function withoutPod(subject: Subject, now: number): Finding {
  const { vm, vmi, events, name } = subject;
  const rejected = rejectedBefore(subject, now);
  if (rejected !== undefined) return rejected;
  if (vmi === undefined && vm !== undefined) return withoutInstance(vm, name);
  const synchronized = vmi?.status?.conditions.find(({ type }) => type === 'Synchronized');
  const failed = events.find(({ reason }) => reason === 'FailedCreate');
  const said = (synchronized?.status === 'False' ? synchronized.message : undefined) ?? failed?.message ?? '';
  if (said === '') return noWord(vmi);
  const why = `KubeVirt cannot create its launcher: ${said}`;
  return { stage: 'no-launcher', why, help: denialHelp(said) };
}

/** Seconds after which a rejection says nothing of now: more than KubeVirt's longest pause between two starts. */
const LONGEST_PAUSE = 600;

/** KubeVirt deletes a rejected VMI with its launcher, waits, and starts another. */
function rejectedBefore({ vm, vmi, rejections, name }: Subject, now: number): Finding | undefined {
  const [last] = rejections;
  if (last === undefined || now - timeOf(last) > LONGEST_PAUSE * 1000) return undefined;
  const { consecutiveFailCount: count, retryAfterTimestamp } = vm?.status?.startFailure ?? {};
  const { reason = '', message = '' } = { reason: last.reason ?? '', message: last.message ?? '' };
  const wait = Math.ceil((Date.parse(retryAfterTimestamp ?? '') - now) / 1000);
  const next = wait > 0 ? `, and starts another in ${wait} s` : ', and starts another';
  const times = count != null && count > 1 ? ` (${count} times in a row)` : '';
  const where = last.source?.host ? ` of ${last.source.host}` : '';
  const annotations = vmi?.metadata.annotations ?? vm?.spec.template?.metadata?.annotations;
  const scheduler = 'look at its scheduler and the extender: plumbline doctor';
  return {
    stage: 'rejected',
    why: `the kubelet${where} rejected its launcher (${reason}): ${message}; KubeVirt has deleted it${times}${next}`,
    help: [
      ...(rejectionHelp(reason, message, { annotations }, scheduler) ?? []),
      `kubectl get events shows launchers virt-launcher-${name}-…`,
    ],
  };
}

function withoutInstance({ spec, status }: ExplainedVm, name: string): Finding {
  const wanted =
    spec.running === true || (spec.runStrategy != null && !['Halted', 'Manual'].includes(spec.runStrategy));
  const failure = status?.conditions.find((one) => one.type === 'Failure' && one.status === 'True');
  if (failure?.message) {
    const why = `KubeVirt cannot start it: ${failure.message}`;
    return { stage: 'no-launcher', why, help: denialHelp(failure.message) };
  }
  if (!wanted) return { stage: 'stopped', why: 'it is switched off', help: [`virtctl start ${name}`] };
  const said = status?.printableStatus ? ` (it says ${status.printableStatus})` : '';
  const why = `KubeVirt has made no instance of it yet${said}`;
  return { stage: 'no-launcher', why, help: ['check virt-controller: kubectl -n kubevirt get pods'] };
}

function noWord(vmi: ExplainedVmi | undefined): Finding {
  const phase = vmi?.status?.phase ?? 'Pending';
  if (phase === 'Failed' || phase === 'Succeeded') {
    const why = `its instance has ended (${phase}${vmi?.status?.reason ? `: ${vmi.status.reason}` : ''}) and its launcher is gone`;
    return {
      stage: phase === 'Failed' ? 'failed' : 'succeeded',
      why,
      help: ['see the events below; virtctl restart starts it anew'],
    };
  }
  const why = 'KubeVirt has not created its launcher';
  return { stage: 'no-launcher', why, help: ['check virt-controller: kubectl -n kubevirt get pods'] };
}

/** What to do about a launcher that was refused, by who refused it. */
function denialHelp(text: string): string[] {
  if (/failed calling webhook .*plumbline/.test(text)) {
    return ['bring the webhook back: kubectl -n plumbline-system get pods; plumbline doctor says what is wrong'];
  }
  if (/plumbline: /.test(text)) return ['change the VM as the webhook says'];
  if (/exceeded quota/.test(text)) {
    return [
      'raise the namespace’s quota: it counts all of the launcher, which is the guest’s CPUs, one for an isolated emulator, ' +
        'padding to whole cores, and KubeVirt’s side containers (15m for the console log)',
    ];
  }
  if (/maximum .* usage per|limitrange/i.test(text)) return ['raise the LimitRange of the namespace, or ask for less'];
  return ['change what the message says'];
}

/** The kubelet refused it, or it ended otherwise. */
export function endedPod(pod: ExplainedPod, events: readonly Occurrence[]): Finding {
  const { phase, reason = '', message = '' } = pod.status ?? {};
  const where = pod.spec.nodeName ? ` of ${pod.spec.nodeName}` : '';
  if (phase === 'Succeeded') return { stage: 'succeeded', why: 'it has ended by itself' };
  const check = `check that the extender was asked: its scheduler is ${schedulerOf(pod)} (plumbline doctor extender)`;
  const help = rejectionHelp(reason, message, pod.metadata, check);
  if (help) return { stage: 'rejected', why: `the kubelet${where} rejected it (${reason}): ${message}`, help };
  const evicted = events.find(({ reason: one }) => one === 'EvictedBeforeStart');
  if (evicted) return evictedFinding(evicted);
  return {
    stage: 'failed',
    why: `it has failed${where}: ${[reason, message].filter(Boolean).join(': ') || 'no reason is given'}`,
  };
}

/** Undefined for a reason that is none of the kubelet's rejections. @param check how to find out whether the extender was asked */
function rejectionHelp(
  reason: string,
  message: string,
  metadata: Parameters<typeof wantsWholeCores>[0],
  check: string,
): readonly string[] | undefined {
  switch (reason) {
    case 'SMTAlignmentError':
      return smtHelp(metadata, message);
    case 'TopologyAffinityError':
      return ['no NUMA nodes held all that it asks for: plumbline top shows where room is', check];
    case 'UnexpectedAdmissionError':
      return [
        'something that it asks for was given to another pod first: it is tried again',
        'if it happens again: plumbline doctor',
      ];
    default:
      return undefined;
  }
}

function smtHelp(metadata: Parameters<typeof wantsWholeCores>[0], message: string): string[] {
  if (/not enough free physical CPUs/.test(message)) {
    return ['its cores were given to another pod first: it is tried again', 'if it happens again: plumbline doctor'];
  }
  if (!wantsWholeCores(metadata)) {
    return [`annotate the VM’s template with ${FULL_PCPUS_ANNOTATION}: ${FULL_PCPUS_ONLY} and start it anew`];
  }
  return ['start the VM anew once the webhook works (plumbline doctor says what is wrong with it)'];
}

function evictedFinding({ message }: Occurrence): Finding {
  const why = `it was evicted before it started: ${message ?? ''}`;
  return { stage: 'failed', why, help: ['its owner makes another one, which goes elsewhere: look at that one'] };
}

/** It waits for something else than a node. Undefined: it waits for a node. */
export function beforeScheduling(pod: ExplainedPod): Finding | undefined {
  const gates = pod.spec.schedulingGates.map(({ name }) => name);
  if (gates.length === 0) return undefined;
  const why = `it is held back by scheduling gates: ${gates.join(', ')}`;
  return { stage: 'gated', why, help: ['whoever put the gates there has to remove them'] };
}

/** How the kubelet words the agent's refusal before a container starts. */
const BEFORE_START = 'PreStartContainer rpc failed';
const REFUSED = 'code = FailedPrecondition desc = ';

function refusedAllocationIn(message = ''): string | undefined {
  if (!message.includes(BEFORE_START)) return undefined;
  const at = message.lastIndexOf(REFUSED);
  return at < 0 ? undefined : message.slice(at + REFUSED.length);
}

/** On a node, not running yet. */
export function startingPod(
  pod: ExplainedPod,
  node: ExplainedNode | undefined,
  events: readonly Occurrence[],
): Finding {
  const at = pod.spec.nodeName ?? '';
  const waiting = [...(pod.status?.initContainerStatuses ?? []), ...(pod.status?.containerStatuses ?? [])]
    .map(({ state }) => state?.waiting)
    .filter((one) => one != null);
  const refused = waiting.map(({ message }) => refusedAllocationIn(message ?? '')).find((one) => one !== undefined);
  if (refused !== undefined) {
    const help = ['the extender evicts it, so that its owner makes another one; if it stays: plumbline doctor'];
    return { stage: 'starting', why: `the agent on ${at} refused its CPUs: ${refused}`, help };
  }
  const sandbox = events.find(({ reason }) => reason === 'FailedCreatePodSandBox');
  const dpu = node?.status?.conditions.find(({ type }) => type === DPU_READY_CONDITION);
  if (dpu?.status === 'False' || /DPU/.test(sandbox?.message ?? '')) {
    const said = dpu?.status === 'False' ? (dpu.message ?? 'its lease has run out') : (sandbox?.message ?? '');
    const help = [`bring the DPU of ${at} back (docs/dpu.md); new pods go elsewhere meanwhile`];
    return { stage: 'starting', why: `the DPU of ${at} is not ready: ${said}`, help };
  }
  const pending = waiting.find(({ reason }) => reason && !['PodInitializing', 'ContainerCreating'].includes(reason));
  const said = pending
    ? `${pending.reason}: ${pending.message ?? ''}`
    : (sandbox?.message ?? 'its containers are being created');
  return { stage: 'starting', why: `it is on ${at} and has not started: ${said}` };
}
