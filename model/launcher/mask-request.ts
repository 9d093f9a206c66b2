import { BoundedMap } from '../bounded-map.ts';
import { briefMask, type CpuMask, checkCount, formatMask, parseMask, pinsNothing } from '../cpu-mask/mask.ts';
import { ParseError } from '../errors.ts';
import { CPU_MASK_ANNOTATION, FIX_CPU_MISMATCH_ANNOTATION } from '../names.ts';
import type { MetaShape, VmiShape } from '../shapes.ts';
import { guestVcpus } from './cpus.ts';

export interface MaskRequest {
  readonly mask: CpuMask;
  /** Canonical; absent: that of the mask. */
  readonly text?: string;
  readonly fixMismatch: boolean;
}

/** Undefined without a mask and for one that pins nothing. The mask stays text. @throws ParseError */
export function maskRequestOf({ annotations }: Pick<MetaShape, 'annotations'>): MaskRequest | undefined {
  const text = annotations?.[CPU_MASK_ANNOTATION];
  if (text === undefined) return undefined;
  const mask = parseMask(text);
  if (pinsNothing(mask)) return undefined;
  const canonical = formatMask(mask);
  return {
    text: canonical,
    fixMismatch: annotations?.[FIX_CPU_MISMATCH_ANNOTATION] === 'true',
    get mask() {
      return parsedMask(canonical);
    },
  };
}

/** The same text for equivalent requests. */
export function maskRequestKey(maskRequest: MaskRequest): string {
  const { text = formatMask(maskRequest.mask), fixMismatch } = maskRequest;
  return fixMismatch ? `${text} or all` : text;
}

/** The least recently used one is dropped first. */
const MAX_READ_MASKS = 64;
const read = new BoundedMap<string, CpuMask>(MAX_READ_MASKS);

function parsedMask(text: string): CpuMask {
  const mask = read.get(text) ?? parseMask(text);
  read.delete(text);
  read.set(text, mask);
  return mask;
}

export interface MaskedTemplate {
  readonly metadata: MetaShape;
  readonly spec: VmiShape['spec'];
  /** An instancetype sets the CPUs, or KubeVirt may have hotplugged some. */
  readonly vcpusUnknown: boolean;
}

/** Only the object itself is checked, no host. */
export function maskRefusals({ metadata, spec, vcpusUnknown }: MaskedTemplate): string[] {
  const text = metadata.annotations?.[CPU_MASK_ANNOTATION];
  if (text === undefined) return [];
  try {
    const mask = parseMask(text);
    if (spec.domain.cpu?.dedicatedCpuPlacement === true)
      return [
        `annotation ${CPU_MASK_ANNOTATION} (${briefMask(mask)}) and dedicatedCpuPlacement are mutually exclusive: KubeVirt pins dedicated CPUs. Remove one of the two`,
      ];
    const fault = vcpusUnknown ? undefined : checkCount(mask, guestVcpus({ spec }));
    return fault === undefined ? [] : [`annotation ${CPU_MASK_ANNOTATION}: ${fault}`];
  } catch (error) {
    if (error instanceof ParseError) return [`annotation ${CPU_MASK_ANNOTATION}: ${error.message}`];
    throw error;
  }
}

/** A launcher that would get exclusive CPUs: the kubelet then chooses, the mask cannot. @throws ParseError */
export function maskWithExclusiveCpus(metadata: MetaShape): string[] {
  if (maskRequestOf(metadata) === undefined) return [];
  return [
    `annotation ${CPU_MASK_ANNOTATION}: requests and limits of this launcher are equal and whole CPUs, so the kubelet gives it CPUs of its own and a mask cannot choose others; let CPU requests and limits differ, or remove the mask`,
  ];
}
