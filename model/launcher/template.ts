import { ParseError, quote } from '../errors.ts';
import {
  CPU_MASK_ANNOTATION,
  CPU_MASK_START_ANNOTATION,
  FIX_CPU_MISMATCH_ANNOTATION,
  FULL_PCPUS_ANNOTATION,
  NUMA_AFFINITY_ANNOTATION,
} from '../names.ts';
import { parseAffinities } from '../networks/affinity.ts';
import { annotationFindings } from './annotation.ts';
import { guestVcpus } from './cpus.ts';
import { maskRefusals } from './mask-check.ts';
import { pausesAtStart } from './paused-start.ts';
import type { MetaShape, VmiShape } from './shapes.ts';

/** What VMIs are made of: a VMI itself, or the template in a VM, a replica set or a pool. */
export interface VmTemplate {
  /** The template's; for a VMI its own. Only these reach the launcher. */
  readonly metadata: MetaShape;
  readonly spec: VmiShape['spec'];
  /** An instancetype brings the CPUs, so they are known only at the VMI. */
  readonly instancetype: boolean;
}

/** What a template was before an update. */
export interface TemplateUpdate {
  readonly previous: VmTemplate;
  /** The object is a VMI, whose vCPUs KubeVirt alone changes once it is made: it plugs them in. */
  readonly instance: boolean;
}

export interface TemplateFindings {
  /** Any of them refuses the object. */
  readonly refusals: readonly string[];
  readonly warnings: readonly string[];
}

/**
 * Checks the CPU side of a template and the form of Plumbline's annotations.
 *
 * A rule that refuses applies only when one of its inputs changes, as in Ganeti: an object that was stored unchecked
 * can still be labelled, lose its finalizers, and be corrected. vCPUs that KubeVirt plugs into a VMI are no reason to
 * ask: the VM was asked when its user wrote them, and KubeVirt writes nothing else to a VMI while this is refused.
 * @param update undefined for an object that is created
 */
export function checkTemplate(
  current: VmTemplate,
  update: TemplateUpdate | undefined,
  gate: boolean,
): TemplateFindings {
  const previous = update?.previous;
  const refusals = [
    ...(update && sameMaskSides(current, update)
      ? []
      : maskRefusals({ ...current, vcpusUnknown: current.instancetype })),
    ...(isSame(current, previous, NUMA_AFFINITY_ANNOTATION) ? [] : requestRefusals(current)),
  ];
  const { annotations } = current.metadata;
  const cpu = current.instancetype ? undefined : (current.spec.domain.cpu ?? {});
  const about = annotationFindings(current.metadata, cpu, gate);
  const warnings = [
    ...about.map(({ message }) => message),
    ...choiceWarnings(current.metadata, FIX_CPU_MISMATCH_ANNOTATION, ['false', 'true']),
    ...choiceWarnings(current.metadata, CPU_MASK_START_ANNOTATION, ['paused', 'running']),
  ];
  if (refusals.length === 0 && annotations?.[CPU_MASK_ANNOTATION] !== undefined)
    warnings.push(...startWarnings(current));
  return { refusals, warnings };
}

/** Of an annotation that goes with a mask and has one of a few values, the first of which is the default. */
function choiceWarnings({ annotations }: MetaShape, name: string, values: readonly string[]): string[] {
  const value = annotations?.[name];
  if (value === undefined) return [];
  if (!values.includes(value)) {
    const expected = values.toReversed().join(' or ');
    return [
      `annotation ${name} has the unknown value ${quote(value)} and counts as ${values[0]}: expected ${expected}`,
    ];
  }
  return annotations?.[CPU_MASK_ANNOTATION] === undefined
    ? [`annotation ${name} has no effect without ${CPU_MASK_ANNOTATION}`]
    : [];
}

/** A liveness probe keeps KubeVirt from starting a VM paused, which is how a mask is in force before the guest runs. */
function startWarnings(template: VmTemplate): string[] {
  if (template.spec.livenessProbe == null) return [];
  const without = { ...template, spec: { ...template.spec, livenessProbe: undefined } };
  if (!pausesAtStart(without)) return [];
  return [
    `annotation ${CPU_MASK_ANNOTATION}: with a liveness probe the VM cannot start paused, so it runs for a moment before its vCPUs are pinned`,
  ];
}

const TEMPLATE_ANNOTATIONS = [
  FULL_PCPUS_ANNOTATION,
  CPU_MASK_ANNOTATION,
  CPU_MASK_START_ANNOTATION,
  FIX_CPU_MISMATCH_ANNOTATION,
  NUMA_AFFINITY_ANNOTATION,
];

/** What to say of annotations on an object that hands on only those of its template. */
export function misplacedAnnotations(outer: MetaShape, template: MetaShape, path: string): readonly string[] {
  return TEMPLATE_ANNOTATIONS.filter(
    (name) => outer.annotations?.[name] !== undefined && template.annotations?.[name] === undefined,
  ).map((name) => `annotation ${name} has no effect here: put it into ${path}.metadata.annotations`);
}

/** An annotation that cannot be read would have each launcher refused, so the VM is. */
function requestRefusals({ metadata }: VmTemplate): string[] {
  try {
    parseAffinities(metadata.annotations?.[NUMA_AFFINITY_ANNOTATION] ?? '');
    return [];
  } catch (error) {
    if (error instanceof ParseError) return [error.message];
    throw error;
  }
}

function sameMaskSides(current: VmTemplate, { previous, instance }: TemplateUpdate): boolean {
  if (!isSame(current, previous, CPU_MASK_ANNOTATION)) return false;
  const [now, before] = [current.spec.domain, previous.spec.domain];
  const sameVcpus =
    guestVcpus({ metadata: {}, spec: current.spec }) === guestVcpus({ metadata: {}, spec: previous.spec });
  return (
    (instance || sameVcpus) &&
    (now.cpu?.dedicatedCpuPlacement ?? false) === (before.cpu?.dedicatedCpuPlacement ?? false)
  );
}

function isSame(current: VmTemplate, previous: VmTemplate | undefined, annotation: string): boolean {
  return (
    previous !== undefined && current.metadata.annotations?.[annotation] === previous.metadata.annotations?.[annotation]
  );
}
