import { isAligned } from '../alignment.ts';
import { cpusText } from '../amounts.ts';
import { MAX_CPUS } from '../cpu-set.ts';
import { ParseError, quote } from '../errors.ts';
import {
  ALIGN_ANNOTATION,
  CPU_MASK_ANNOTATION,
  CPU_MASK_START_ANNOTATION,
  DECISION_ANNOTATION,
  FIX_CPU_MISMATCH_ANNOTATION,
  FULL_PCPUS_ANNOTATION,
  FULL_PCPUS_ONLY,
  NUMA_AFFINITY_ANNOTATION,
  PAUSED_START_ANNOTATION,
  PLACEMENT_ANNOTATION,
} from '../names.ts';
import { parseAffinities } from '../networks/interfaces.ts';
import type { MetaShape, VmiShape } from '../shapes.ts';
import { type AlignmentPolicy, annotationFindings, wantsWholeCores } from './annotation.ts';
import { guestVcpus, launcherCpus, withoutThreads } from './cpus.ts';
import { maskRefusals } from './mask-request.ts';
import { pausesAtStart } from './paused-start.ts';
import type { NodeKind } from './smt-affinity.ts';

/** A VMI itself, or the template in a VM, a replica set or a pool. */
export interface VmTemplate {
  /** Only these annotations and labels reach the launcher. */
  readonly metadata: MetaShape;
  readonly spec: VmiShape['spec'];
  /** Whether an instancetype sets the CPUs, so that only the VMI has them. */
  readonly instancetype: boolean;
}

interface TemplateUpdate {
  readonly previous: VmTemplate;
  /** Whether the object is a VMI. After its creation only KubeVirt changes its vCPUs, by hotplug. */
  readonly instance: boolean;
}

/**
 * As in Ganeti, a rule that refuses applies only when one of its inputs changes: users can still label, correct and
 * delete stored objects. vCPUs that KubeVirt hotplugs into a VMI do not trigger a rule: KubeVirt could write nothing
 * else to it.
 * @param update undefined if the object is new
 */
export function checkTemplate(current: VmTemplate, update: TemplateUpdate | undefined, gate: boolean) {
  const { metadata, spec, instancetype } = current;
  const refusals = [
    ...(update && sameMaskSides(current, update) ? [] : maskRefusals({ metadata, spec, vcpusUnknown: instancetype })),
    ...(isSame(current, update?.previous, NUMA_AFFINITY_ANNOTATION) ? [] : requestRefusals(current)),
  ];
  const about = annotationFindings(metadata, instancetype ? undefined : (spec.domain.cpu ?? {}), gate);
  const hasMask = refusals.length === 0 && metadata.annotations?.[CPU_MASK_ANNOTATION] !== undefined;
  const warnings = [
    ...about.map(({ message }) => message),
    ...choiceWarnings(metadata, FIX_CPU_MISMATCH_ANNOTATION, ['false', 'true']),
    ...choiceWarnings(metadata, CPU_MASK_START_ANNOTATION, ['paused', 'running']),
    ...(hasMask ? startWarnings(current) : []),
  ];
  return { refusals, warnings };
}

/** The first value is the default. */
function choiceWarnings({ annotations }: MetaShape, name: string, values: readonly string[]): string[] {
  const value = annotations?.[name];
  if (value === undefined) return [];
  const expected = values.toReversed().join(' or ');
  if (!values.includes(value))
    return [
      `annotation ${name} has the unknown value ${quote(value)} and counts as ${values[0]}: expected ${expected}`,
    ];
  if (annotations?.[CPU_MASK_ANNOTATION] !== undefined) return [];
  return [`annotation ${name} has no effect without ${CPU_MASK_ANNOTATION}`];
}

/** KubeVirt starts no VM with a liveness probe paused, so its mask is not in effect before the guest runs. */
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

/** Warnings about annotations on an object that passes on only those of its template. */
export function misplacedAnnotations(outer: MetaShape, template: MetaShape, path: string): readonly string[] {
  return TEMPLATE_ANNOTATIONS.filter(
    (name) => outer.annotations?.[name] !== undefined && template.annotations?.[name] === undefined,
  ).map((name) => `annotation ${name} has no effect here: put it into ${path}.metadata.annotations`);
}

const PREFIX = 'plumbline.dev/';
const VM_ANNOTATIONS = TEMPLATE_ANNOTATIONS.filter((name) => name.startsWith(PREFIX));
/** Those that Plumbline itself writes, or reads on other objects. */
const OTHER_ANNOTATIONS = [ALIGN_ANNOTATION, DECISION_ANNOTATION, PAUSED_START_ANNOTATION, PLACEMENT_ANNOTATION];
const MAX_UNKNOWN_ANNOTATIONS = 5;

/** A typing error has no effect. @param names of all annotations */
export function unknownAnnotations(names: readonly string[]): readonly string[] {
  const annotations = [...VM_ANNOTATIONS, ...OTHER_ANNOTATIONS];
  const unknown = names.filter((name) => name.startsWith(PREFIX) && !annotations.includes(name));
  return unknown.slice(0, MAX_UNKNOWN_ANNOTATIONS).map((name) => {
    return `annotation ${quote(name)} is unknown and has no effect: those of a VM are ${VM_ANNOTATIONS.join(', ')}`;
  });
}

/** Every launcher of such a VM would be refused. */
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
  const isDedicated = ({ spec }: VmTemplate) => spec.domain.cpu?.dedicatedCpuPlacement ?? false;
  return (instance || guestVcpus(current) === guestVcpus(previous)) && isDedicated(current) === isDedicated(previous);
}

function isSame({ metadata }: VmTemplate, previous: VmTemplate | undefined, annotation: string): boolean {
  return previous !== undefined && metadata.annotations?.[annotation] === previous.metadata.annotations?.[annotation];
}

/** The guest's scheduler then keeps work off vCPUs. Undefined if some node has threads, or none is known. */
export function threadsWarning({ spec, instancetype }: VmTemplate, candidates: readonly NodeKind[]) {
  const { threads = 1, dedicatedCpuPlacement } = spec.domain.cpu ?? {};
  if (instancetype || dedicatedCpuPlacement !== true || threads <= 1 || candidates.length === 0) return undefined;
  if (candidates.some(({ threadsPerCore }) => threadsPerCore > 1)) return undefined;
  return `no node that this VM may go to has SMT: ${withoutThreads(threads)}; give it cores instead (spec.domain.cpu.threads: 1)`;
}

/**
 * If every full-pcpus-only node that it can run on would reject its launcher, and nothing pads it. Undefined if one
 * accepts it, or none or the CPUs are known. @throws ParseError as launcherCpus
 */
export function rejectionWarning(
  template: VmTemplate,
  candidates: readonly NodeKind[],
  { gate, policy }: { readonly gate: boolean; readonly policy: AlignmentPolicy },
): string | undefined {
  const { metadata, spec, instancetype } = template;
  const { dedicatedCpuPlacement, isolateEmulatorThread } = spec.domain.cpu ?? {};
  if (instancetype || dedicatedCpuPlacement !== true) return undefined;
  const isolated = isolateEmulatorThread === true;
  if (gate && isolated && (policy !== 'annotated' || wantsWholeCores(metadata))) return undefined;
  const { total } = launcherCpus({ metadata, spec });
  // KubeVirt's own webhook checks sizes that no host has.
  if (!(total >= 1 && total < MAX_CPUS)) return undefined;
  const asking = candidates.filter(({ fullPcpusOnly }) => fullPcpusOnly);
  if (asking.length === 0 || asking.some(({ threadsPerCore }) => isAligned(total, threadsPerCore))) return undefined;
  const kinds = [...new Set(asking.map(({ threadsPerCore }) => threadsPerCore))].sort((a, b) => a - b);
  const where = asking.length === candidates.length ? 'every node it can go to' : 'every full-pcpus-only node';
  const remedy =
    isolated && gate
      ? `annotate the template with ${FULL_PCPUS_ANNOTATION}: ${FULL_PCPUS_ONLY}`
      : 'give it vCPUs that fill whole cores';
  return `the launcher asks for ${cpusText(total)}: ${where} (${kinds.join(' or ')} threads per core) rejects it, SMTAlignmentError; ${remedy}`;
}
