import { checkCount } from '../cpu-mask/check.ts';
import { briefMask, parseMask } from '../cpu-mask/mask.ts';
import { ParseError } from '../errors.ts';
import { CPU_MASK_ANNOTATION } from '../names.ts';
import { guestVcpus } from './cpus.ts';
import { maskRequestOf } from './mask-request.ts';
import type { MetaShape, VmiShape } from './shapes.ts';

export interface MaskedTemplate {
  readonly metadata: MetaShape;
  readonly spec: VmiShape['spec'];
  /**
   * Whether the number of vCPUs is unknown, because an instancetype sets the CPUs or KubeVirt may have hotplugged some.
   */
  readonly vcpusUnknown: boolean;
}

/** Why a VM, a VMI or its launcher is refused because of its CPU mask. Only the object itself is checked, no host. */
export function maskRefusals({ metadata, spec, vcpusUnknown }: MaskedTemplate): string[] {
  const text = metadata.annotations?.[CPU_MASK_ANNOTATION];
  if (text === undefined) return [];
  try {
    const mask = parseMask(text);
    if (spec.domain.cpu?.dedicatedCpuPlacement === true) {
      const why = `annotation ${CPU_MASK_ANNOTATION} (${briefMask(mask)}) and dedicatedCpuPlacement exclude each other: KubeVirt pins dedicated CPUs. Remove one of the two`;
      return [why];
    }
    const fault = vcpusUnknown ? undefined : checkCount(mask, guestVcpus({ metadata, spec }));
    return fault === undefined ? [] : [`annotation ${CPU_MASK_ANNOTATION}: ${fault.message}`];
  } catch (error) {
    if (error instanceof ParseError) return [`annotation ${CPU_MASK_ANNOTATION}: ${error.message}`];
    throw error;
  }
}

/**
 * Why a mask is refused on a launcher that would get exclusive CPUs although its VM has no dedicated CPUs: all its
 * containers are Guaranteed and this one requests whole CPUs. The kubelet then chooses the CPUs, and the mask cannot.
 * @throws ParseError if the mask cannot be parsed
 */
export function maskWithOwnCpus(metadata: MetaShape): string[] {
  if (maskRequestOf(metadata) === undefined) return [];
  return [
    `annotation ${CPU_MASK_ANNOTATION}: requests and limits of this launcher are equal and whole CPUs, so the kubelet gives it CPUs of its own and a mask cannot choose others; let CPU requests and limits differ, or remove the mask`,
  ];
}
