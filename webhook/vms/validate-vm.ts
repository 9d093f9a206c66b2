import type * as z from 'zod';
import type { ObjectMeta } from '../../kube/resources.ts';
import {
  startingInstance,
  type startingSpec,
  virtualMachine,
  virtualMachineInstanceReplicaSet,
  virtualMachinePool,
} from '../../kube/virtual-machines.ts';
import type { SchedulerFacts, Settings } from '../../model/admission/facts.ts';
import { schedulerWarnings } from '../../model/admission/scheduling.ts';
import { issuesText, PlumblineError } from '../../model/errors.ts';
import { isObject } from '../../model/json.ts';
import { hasAsked } from '../../model/launcher/annotation.ts';
import {
  checkTemplate,
  misplacedAnnotations,
  rejectionWarning,
  threadsWarning,
  unknownAnnotations,
  type VmTemplate,
} from '../../model/launcher/template.ts';
import type { ClusterFactsOptions } from '../cluster/cluster-facts.ts';
import { type AdmissionAnswer, type AdmissionRequest, type Review, refused } from '../review/admission-review.ts';
import { maskWarnings, reviewNetworks } from './vm-findings.ts';

export interface VmValidationOptions extends Settings, ClusterFactsOptions {
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
  if (previous !== undefined && unknown.length === 0 && judged(previous) === judged(current)) return { allowed: true };
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
  const named = [object, template].map((one) => within(within(one, 'metadata'), 'annotations'));
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
  const [own, before] = [current, previous].map((one) => one?.spec.schedulerName ?? undefined);
  return own === before || !hasAsked(current.metadata) ? [] : schedulerWarnings(own, schedulerName);
}

const JUDGED = [
  'domain',
  'networks',
  'nodeSelector',
  'affinity',
  'livenessProbe',
  'schedulerName',
  'tolerations',
] as const;

function judged({ outer, metadata, spec, instancetype }: ReadTemplate): string {
  return JSON.stringify([outer.annotations, metadata.annotations, instancetype, JUDGED.map((part) => spec[part])]);
}

export interface ReadTemplate extends VmTemplate {
  readonly outer: ObjectMeta;
  readonly metadata: ObjectMeta;
  readonly spec: z.infer<typeof startingSpec>;
  /** Whether a VMI exists that was created from an earlier state of the template. */
  readonly running: boolean;
  /** Path of the template, for messages; undefined for a VMI. */
  readonly path: string | undefined;
}

const NO_METADATA: ObjectMeta = { labels: undefined, annotations: undefined, ownerReferences: undefined };

/**
 * The template in an object of one of KubeVirt's kinds. A string says why it cannot be parsed; undefined: another kind.
 */
export function readTemplate(kind: string, object: unknown): ReadTemplate | string | undefined {
  switch (kind) {
    case 'VirtualMachineInstance':
      return read(startingInstance, object, (vmi) => made(vmi.metadata, vmi, undefined));
    case 'VirtualMachine':
      return read(virtualMachine, object, ({ metadata, spec: { template, instancetype }, status }) => ({
        ...made(metadata, template, 'spec.template', instancetype),
        running: status?.created === true,
      }));
    case 'VirtualMachineInstanceReplicaSet':
      return read(virtualMachineInstanceReplicaSet, object, ({ metadata, spec }) =>
        made(metadata, spec.template, 'spec.template'),
      );
    case 'VirtualMachinePool':
      return read(virtualMachinePool, object, ({ metadata, spec: { virtualMachineTemplate } }) => {
        const { template, instancetype } = virtualMachineTemplate.spec;
        return made(metadata, template, 'spec.virtualMachineTemplate.spec.template', instancetype);
      });
    default:
      return undefined;
  }
}

function made(
  outer: ObjectMeta,
  { metadata = NO_METADATA, spec }: { readonly metadata?: ObjectMeta | undefined; readonly spec: ReadTemplate['spec'] },
  path: string | undefined,
  instancetype?: unknown,
): ReadTemplate {
  return { outer, metadata, spec, instancetype: instancetype != null, running: false, path };
}

function read<S extends z.ZodType>(
  schema: S,
  object: unknown,
  template: (parsed: z.output<S>) => ReadTemplate,
): ReadTemplate | string {
  const result = schema.safeParse(object);
  return result.success ? template(result.data) : issuesText(result.error);
}
