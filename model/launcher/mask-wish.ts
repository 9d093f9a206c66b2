import { type CpuMask, formatMask, parseMask, pinsNothing } from '../cpu-mask/mask.ts';
import { CPU_MASK_ANNOTATION, FIX_CPU_MISMATCH_ANNOTATION } from '../names.ts';
import type { MetaShape } from './shapes.ts';

/** What a VM, or the launcher that has its annotations, asks for as to pinning. */
export interface MaskWish {
  readonly mask: CpuMask;
  /** On a host that lacks CPUs of the mask: `all` in its place. */
  readonly fixMismatch: boolean;
}

/**
 * The wish of a template, a VMI or a launcher; undefined without a mask, and for one that pins nothing.
 * @throws ParseError if the mask cannot be read
 */
export function maskWishOf({ annotations }: Pick<MetaShape, 'annotations'>): MaskWish | undefined {
  const text = annotations?.[CPU_MASK_ANNOTATION];
  if (text === undefined) return undefined;
  const mask = parseMask(text);
  return pinsNothing(mask) ? undefined : { mask, fixMismatch: annotations?.[FIX_CPU_MISMATCH_ANNOTATION] === 'true' };
}

/** The same text for wishes that come to the same. */
export function wishKey({ mask, fixMismatch }: MaskWish): string {
  return fixMismatch ? `${formatMask(mask)} or all` : formatMask(mask);
}
