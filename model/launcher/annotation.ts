import { quote } from '../errors.ts';
import type { Finding } from '../finding.ts';
import { FULL_PCPUS_ANNOTATION, FULL_PCPUS_ONLY } from '../names.ts';
import { EVEN_PARITY_ANNOTATION } from './cpus.ts';
import type { GuestCpu, MetaShape } from './shapes.ts';

/** Information for the user about a launcher's CPUs. */
export interface LauncherFinding extends Finding {
  readonly code: LauncherFindingCode;
  /** The container that the finding is about. */
  readonly container?: string;
}

type LauncherFindingCode =
  | 'unknown-annotation-value'
  | 'gate-off'
  | 'no-effect-not-dedicated'
  | 'no-effect-not-isolated'
  | 'mixed-candidates'
  | 'misaligned-container'
  | 'not-guaranteed'
  | 'no-exclusive-cpus'
  | 'pod-level-resources';

/**
 * Whether a VM asks for whole cores: by Plumbline's annotation, or by KubeVirt's, which KubeVirt sets on every VMI with
 * isolateEmulatorThread if AlignCPUs is on. For the latter KubeVirt itself only creates an even number of CPUs.
 */
export function wantsWholeCores({ annotations }: MetaShape): boolean {
  return (
    annotations?.[FULL_PCPUS_ANNOTATION] === FULL_PCPUS_ONLY || annotations?.[EVEN_PARITY_ANNOTATION] !== undefined
  );
}

/**
 * Findings about the annotation on a VM template, a VMI or a launcher, for its user. Empty if the annotation is absent
 * or fully effective.
 * @param cpu undefined: unknown, because an instancetype sets it
 */
export function annotationFindings(
  meta: MetaShape,
  cpu: GuestCpu | undefined,
  gate: boolean,
): readonly LauncherFinding[] {
  const value = meta.annotations?.[FULL_PCPUS_ANNOTATION];
  if (value === undefined) return [];
  if (value !== FULL_PCPUS_ONLY) {
    return [
      {
        severity: 'warning',
        code: 'unknown-annotation-value',
        message: `annotation ${FULL_PCPUS_ANNOTATION} has the unknown value ${quote(value)} and no effect: the only value is ${FULL_PCPUS_ONLY}`,
      },
    ];
  }
  if (!gate) return [noEffect('gate-off', "Plumbline's feature gate FullPCPUsOnly is off")];
  if (cpu === undefined) return [];
  if (cpu.dedicatedCpuPlacement !== true) {
    return [noEffect('no-effect-not-dedicated', 'the VM has no dedicatedCpuPlacement')];
  }
  if (cpu.isolateEmulatorThread !== true) {
    return [
      noEffect('no-effect-not-isolated', 'the VM has no isolateEmulatorThread, so its launcher gets no CPU added'),
    ];
  }
  return [];
}

function noEffect(code: LauncherFindingCode, why: string): LauncherFinding {
  return { severity: 'warning', code, message: `annotation ${FULL_PCPUS_ANNOTATION} has no effect: ${why}` };
}
