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
  /** Not known here: an instancetype brings the CPUs, or KubeVirt may have plugged some in. */
  readonly vcpusUnknown: boolean;
}

/** What refuses a VM, a VMI or its launcher for its CPU mask, by what they say themselves: no host is asked. */
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
 * A launcher on shared CPUs by its VM that the kubelet would give CPUs of its own, since all its containers are
 * Guaranteed and this one asks for whole CPUs: then the kubelet chooses the CPUs, and the mask could not.
 * @throws ParseError if the mask cannot be read
 */
export function maskWithOwnCpus(metadata: MetaShape): string[] {
  if (maskRequestOf(metadata) === undefined) return [];
  return [
    `annotation ${CPU_MASK_ANNOTATION}: requests and limits of this launcher are equal and whole CPUs, so the kubelet gives it CPUs of its own and a mask cannot choose others; let CPU requests and limits differ, or remove the mask`,
  ];
}
