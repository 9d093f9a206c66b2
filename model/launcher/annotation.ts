import { type Finding, quote } from '../errors.ts';
import {
  ALIGN_ANNOTATION,
  ALIGN_WHOLE_CORES,
  CPU_MASK_ANNOTATION,
  FULL_PCPUS_ANNOTATION,
  FULL_PCPUS_ONLY,
  NUMA_AFFINITY_ANNOTATION,
} from '../names.ts';
import { NETWORKS_ANNOTATION } from '../networks/attachments.ts';
import type { GuestCpu, MetaShape } from '../shapes.ts';
import { EVEN_PARITY_ANNOTATION } from './cpus.ts';

/** By Plumbline's annotation, or by KubeVirt's, set on VMIs with isolateEmulatorThread if AlignCPUs is on. */
export function wantsWholeCores({ annotations }: MetaShape): boolean {
  return (
    annotations?.[FULL_PCPUS_ANNOTATION] === FULL_PCPUS_ONLY || annotations?.[EVEN_PARITY_ANNOTATION] !== undefined
  );
}

/** KubeVirt then does not request the CPUs, so there is nothing to pad or to predict; a claim's owner sizes it. */
export const CPUS_FROM_CLAIM =
  'the VM gets its CPUs from a claim (domain.cpu.dra), which Plumbline neither pads nor predicts';

/** Empty if the annotation is absent or fully effective. @param cpu undefined: unknown, an instancetype sets it */
export function annotationFindings(meta: MetaShape, cpu: GuestCpu | undefined, gate: boolean): readonly Finding[] {
  const value = meta.annotations?.[FULL_PCPUS_ANNOTATION];
  if (value === undefined) return [];
  if (value !== FULL_PCPUS_ONLY) {
    const what = `has the unknown value ${quote(value)} and no effect: the only value is ${FULL_PCPUS_ONLY}`;
    return [warning('unknown-annotation-value', what)];
  }
  const noEffect = (code: string, why: string) => [warning(code, `has no effect: ${why}`)];
  if (!gate) return noEffect('gate-off', "Plumbline's feature gate FullPCPUsOnly is off");
  if (cpu === undefined) return [];
  if (cpu.dra !== undefined) return noEffect('no-effect-claim', CPUS_FROM_CLAIM);
  if (cpu.dedicatedCpuPlacement !== true) {
    return noEffect('no-effect-not-dedicated', 'the VM has no dedicatedCpuPlacement');
  }
  if (cpu.isolateEmulatorThread === true) return [];
  return noEffect('no-effect-not-isolated', 'the VM has no isolateEmulatorThread, so its launcher gets no CPU added');
}

function warning(code: string, what: string): Finding {
  return { severity: 'warning', code, message: `annotation ${FULL_PCPUS_ANNOTATION} ${what}` };
}

/** With any value. */
export function asksForAlignment(meta: MetaShape): boolean {
  return meta.annotations?.[ALIGN_ANNOTATION] !== undefined;
}

export function asksForWholeCores(meta: MetaShape): boolean {
  return meta.annotations?.[ALIGN_ANNOTATION] === ALIGN_WHOLE_CORES;
}

/** The webhook configurations list the same names: no other launcher waits for this webhook. */
export const ASKING: readonly string[] = [
  FULL_PCPUS_ANNOTATION,
  EVEN_PARITY_ANNOTATION,
  CPU_MASK_ANNOTATION,
  NETWORKS_ANNOTATION,
  NUMA_AFFINITY_ANNOTATION,
];

export function hasAsked({ annotations }: Pick<MetaShape, 'annotations'>): boolean {
  return ASKING.some((name) => annotations?.[name] !== undefined);
}

/** `annotated`: those that opt in; `always`: all; `auto`: all, to the threads per core of the candidate nodes. */
export const ALIGNMENT_POLICIES = ['annotated', 'always', 'auto'] as const;
export type AlignmentPolicy = (typeof ALIGNMENT_POLICIES)[number];

/** The reaction to a VM that is larger than the NUMA nodes of its networks on every node that it can run on. */
export const OVERSIZED_POLICIES = ['refuse', 'warn'] as const;
export type OversizedPolicy = (typeof OVERSIZED_POLICIES)[number];
