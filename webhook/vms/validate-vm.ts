import type { SchedulerFacts, Settings } from '../../model/admission/facts.ts';
import { schedulerWarnings } from '../../model/admission/scheduling.ts';
import { PlumblineError } from '../../model/errors.ts';
import { isObject } from '../../model/json.ts';
import { hasAsked } from '../../model/launcher/annotation.ts';
import {
  checkTemplate,
  misplacedAnnotations,
  rejectionWarning,
  threadsWarning,
  unknownAnnotations,
} from '../../model/launcher/template.ts';
import type { ClusterFactsOptions } from '../cluster/cluster-facts.ts';
import { type AdmissionAnswer, type AdmissionRequest, type Review, refused } from '../review/admission-review.ts';
import { maskWarnings, reviewNetworks } from './vm-findings.ts';
import { type ReadTemplate, readTemplate } from './vm-template.ts';

interface VmValidationOptions extends Settings, ClusterFactsOptions {
  readonly route: Pick<SchedulerFacts, 'schedulerName'>;
}

/** Users see warnings here, not those about a launcher. An object that cannot be parsed is admitted with a warning. */
export function createVmValidation(options: VmValidationOptions): Review {
  return async (request) => {
    if (request.operation !== 'CREATE' && request.operation !== 'UPDATE') return { allowed: true };
    if (request.subResource !== undefined && request.subResource !== '') return { allowed: true };
    const current = readTemplate(request.kind.kind, request.object);
    if (current === undefined) return { allowed: true };
    if (typeof current === 'string') {
      return { allowed: true, warnings: [`plumbline could not read this object and has not checked it: ${current}`] };
    }
    // An update of an object that is being deleted only removes finalizers.
    if (current.outer.deletionTimestamp !== undefined) return { allowed: true };
    try {
      return await validate(request, current, options);
    } catch (error) {
      if (error instanceof PlumblineError) return refused(400, error.message);
      throw error;
    }
  };
}

async function validate(
  request: AdmissionRequest,
  current: ReadTemplate,
  options: VmValidationOptions,
): Promise<AdmissionAnswer> {
  const old = request.operation === 'UPDATE' ? readTemplate(request.kind.kind, request.oldObject) : undefined;
  const previous = typeof old === 'object' ? old : undefined;
  // Controllers write VMIs all the time. Parts that they do not change were reviewed before.
  const namesBefore = annotationNames(request.oldObject, current.path);
  const names = annotationNames(request.object, current.path).filter((name) => !namesBefore.includes(name));
  const unknown = unknownAnnotations(names);
  if (previous !== undefined && unknown.length === 0 && checkedFields(previous) === checkedFields(current))
    return { allowed: true };
  const instance = current.path === undefined;
  const { refusals, warnings } = checkTemplate(current, previous && { previous, instance }, options.gate);
  if (refusals.length > 0) {
    if (previous !== undefined && instance && isKubeVirtController(request))
      return { allowed: true, warnings: refusals };
    return refused(422, refusals.join('; '), warnings);
  }
  const misplaced =
    current.path === undefined ? [] : misplacedAnnotations(current.outer, current.metadata, current.path);
  const namespace = request.namespace ?? current.outer.namespace ?? 'default';
  const aboutMask = maskWarnings(current, previous, options.view);
  const aboutNetworks = await reviewNetworks(namespace, current, previous, options);
  if (aboutNetworks.refusal !== undefined) return refused(422, aboutNetworks.refusal, warnings);
  const candidates = options.view.candidates(current.spec);
  const aboutNodes = [rejectionWarning(current, candidates, options), threadsWarning(current, candidates)].filter(
    (warning) => warning !== undefined,
  );
  const aboutScheduler = aboutSchedulerOf(current, previous, options.route.schedulerName);
  const before = [...warnings, ...unknown, ...misplaced, ...aboutMask];
  return { allowed: true, warnings: [...before, ...aboutNodes, ...aboutNetworks.warnings, ...aboutScheduler] };
}

/** Of the object and its template as they were sent: the schemas drop annotations that Plumbline does not read. */
function annotationNames(object: unknown, path = ''): string[] {
  const within = (value: unknown, field: string) => (isObject(value) ? value[field] : undefined);
  const template = path.split('.').reduce(within, object);
  const named = [object, template].map((holder) => within(within(holder, 'metadata'), 'annotations'));
  return [...new Set(named.flatMap((annotations) => (isObject(annotations) ? Object.keys(annotations) : [])))];
}

/**
 * KubeVirt's controller copies changes of a VM to its VMI part by part, and copies nothing more after a refusal. A
 * user's account with this name only leaves their own VMI unchecked.
 */
function isKubeVirtController({ userInfo }: AdmissionRequest): boolean {
  return /^system:serviceaccount:[^:]+:kubevirt-controller$/.test(userInfo?.username ?? '');
}

/** Warns once, when the name is written, and only about VMs that opt in. */
function aboutSchedulerOf(current: ReadTemplate, previous: ReadTemplate | undefined, schedulerName: string): string[] {
  const [currentScheduler, previousScheduler] = [current, previous].map(
    (template) => template?.spec.schedulerName ?? undefined,
  );
  return currentScheduler === previousScheduler || !hasAsked(current.metadata)
    ? []
    : schedulerWarnings(currentScheduler, schedulerName);
}

const CHECKED_FIELDS = [
  'domain',
  'networks',
  'nodeSelector',
  'affinity',
  'livenessProbe',
  'schedulerName',
  'tolerations',
] as const;

function checkedFields({ outer, metadata, spec, instancetype }: ReadTemplate): string {
  return JSON.stringify([
    outer.annotations,
    metadata.annotations,
    instancetype,
    CHECKED_FIELDS.map((part) => spec[part]),
  ]);
}
