import { pod as podSchema } from '../../kube/resources.ts';
import { decide } from '../../model/admission/decide.ts';
import { paddingOf } from '../../model/admission/decision-annotation.ts';
import type { Decision, PodFacts, SchedulerFacts, Settings } from '../../model/admission/facts.ts';
import { resizeRefusal } from '../../model/admission/resize.ts';
import { schedulingOf } from '../../model/admission/scheduling.ts';
import { cut, issuesText, PlumblineError } from '../../model/errors.ts';
import { DECISION_ANNOTATION } from '../../model/names.ts';
import { type AdmissionAnswer, type AdmissionRequest, type Review, refused } from '../review/admission-review.ts';
import type { WebhookLogger } from '../telemetry/log-messages.ts';
import { type GatherOptions, gather, podUnderReview } from './gather.ts';
import { patchFor, type RawPod } from './patch.ts';

interface MutatePodOptions extends GatherOptions {
  readonly log: Pick<WebhookLogger, 'info' | 'warn'>;
}

/** Characters of a namespace and name, and of a refusal, in a line of the log. */
const MAX_NAME_CHARACTERS = 320;
const MAX_REASON_CHARACTERS = 512;

/** Reviews new pods and returns the patch to apply. The decision annotation in it is the record of the decision. */
export function createPodMutation(options: MutatePodOptions): Review {
  return async (request) => {
    if (request.kind.kind !== 'Pod' || request.operation !== 'CREATE') return { allowed: true };
    const facts = await gather(request, options);
    const decision = decide(facts);
    const answer = answerTo(request, decision);
    if (request.dryRun !== true) logDecision(options.log, facts, decision);
    return answer;
  };
}

function answerTo({ object }: AdmissionRequest, decision: Decision): AdmissionAnswer {
  const warnings = decision.findings.filter(({ severity }) => severity !== 'error').map(({ message }) => message);
  switch (decision.outcome) {
    case 'refused':
      return refused(decision.code, decision.reason, warnings);
    case 'changed':
      return { allowed: true, patch: patchFor(object as RawPod, decision.changes), warnings };
    case 'unchanged':
      return { allowed: true, ...(warnings.length === 0 ? {} : { warnings }) };
  }
}

/** Writes one line for each launcher that is padded or refused, and for each pod that cannot be read. Anyone may send a review. */
function logDecision(log: MutatePodOptions['log'], facts: PodFacts, decision: Decision): void {
  if (facts.kind === 'unreadable')
    log.warn({ reason: cut(facts.why, MAX_REASON_CHARACTERS) }, 'unreadable pod refused');
  if (facts.kind !== 'launcher' || decision.outcome === 'unchanged') return;
  const vmi = cut(`${facts.namespace}/${facts.vmi.name}`, MAX_NAME_CHARACTERS);
  if (decision.outcome === 'refused') {
    const { code, reason } = decision;
    log.warn({ vmi, code, reason: cut(reason, MAX_REASON_CHARACTERS) }, 'launcher refused');
    return;
  }
  const { containers, annotations } = decision.changes;
  const { cpus } = containers.find(({ list, index }) => list === 'containers' && index === facts.compute) ?? {};
  const padding = paddingOf({ annotations: { [DECISION_ANNOTATION]: annotations[DECISION_ANNOTATION] ?? '' } });
  if (cpus !== undefined && padding > 0)
    log.info({ vmi, cpusBefore: cpus - padding, cpusAfter: cpus }, 'launcher padded to whole cores');
}

/** Launchers without another decision get Plumbline's scheduler and are never refused (failurePolicy Ignore). */
export function createPodRouting(route: SchedulerFacts): Review {
  return async (request) => {
    if (request.kind.kind !== 'Pod' || request.operation !== 'CREATE') return { allowed: true };
    const read = podUnderReview(request);
    if (read.kind !== 'launcher') return { allowed: true };
    const { set: scheduler, findings } = schedulingOf(read.pod.spec.schedulerName, route);
    const change = { containers: [], annotations: {}, nodes: undefined, scheduler };
    const patch = patchFor(request.object as RawPod, change);
    return { allowed: true, patch, warnings: findings.map(({ message }) => message) };
  };
}

/**
 * Reviews pods before they are stored. A new pod is decided about again, after all mutating webhooks: any change that
 * Plumbline would still make was reverted by another webhook. An aligned pod cannot be resized.
 */
export function createPodValidation(options: GatherOptions): Review {
  return async (request) => {
    if (request.kind.kind !== 'Pod') return { allowed: true };
    if (request.operation === 'UPDATE' && request.subResource === 'resize') return validateResize(request, options);
    return request.operation === 'CREATE' ? validateNew(request, options) : { allowed: true };
  };
}

const WITHOUT_DECISION =
  'the pod is without a decision of Plumbline: the API server did not call its mutating webhook for this pod, or ' +
  `another webhook removed ${DECISION_ANNOTATION}; plumbline doctor installed webhook finds out`;

async function validateNew(request: AdmissionRequest, options: GatherOptions): Promise<AdmissionAnswer> {
  const facts = await gather(request, options);
  const decision = decide(facts);
  if (decision.outcome === 'refused') return refused(decision.code, decision.reason);
  if (decision.outcome === 'unchanged') return { allowed: true };
  const { containers } = decision.changes;
  const changes = patchFor(request.object as RawPod, { containers, annotations: {}, nodes: undefined });
  if (changes.length === 0) return { allowed: true };
  const hasDecision = 'pod' in facts && facts.pod.metadata.annotations?.[DECISION_ANNOTATION] !== undefined;
  const where = changes.map(({ path, value }) => `${path.replaceAll('~1', '/')} should be ${JSON.stringify(value)}`);
  const changed = `another webhook changed Plumbline’s decision: ${where.join(', ')}; retry, or configure it to run earlier`;
  return refused(422, hasDecision ? changed : WITHOUT_DECISION);
}

function validateResize(
  { object, oldObject }: AdmissionRequest,
  settings: Pick<Settings, 'gate' | 'policy'>,
): AdmissionAnswer {
  const [after, before] = [podSchema.safeParse(object), podSchema.safeParse(oldObject)];
  const fault = after.error ?? before.error;
  if (fault !== undefined)
    return refused(400, `the ${after.success ? 'old' : 'new'} object is not a Pod: ${issuesText(fault)}`);
  try {
    const refusal = resizeRefusal(before.data!, after.data!, settings);
    return refusal === undefined ? { allowed: true } : refused(422, refusal);
  } catch (error) {
    if (error instanceof PlumblineError) return refused(400, error.message);
    throw error;
  }
}
