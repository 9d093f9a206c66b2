import type { MaskRequest } from '../launcher/mask-request.ts';
import { fitMask, type MaskHost } from './mask-fit.ts';
import { type NodeVerdict, type Refused, refuse, UNCHECKED } from './verdict.ts';

/** The node would run the VM on all of its CPUs, as it lacks some that the mask names and that was asked for. */
export const MASK_FALLS_BACK: NodeVerdict = Object.freeze({
  ...UNCHECKED,
  warnings: ['lacks CPUs of the CPU mask: the VM runs on all CPUs there, if no other node can keep the mask'],
});

/** What a node that reports, and whose agent lives, makes of a mask. */
export function judgeMask(maskRequest: MaskRequest, host: MaskHost): NodeVerdict {
  const fit = fitMask(maskRequest, host);
  if (!fit.fits) return refuse('cpu-mask', fit.short, fit.text);
  return fit.fellBack ? MASK_FALLS_BACK : UNCHECKED;
}

/** A node whose agent is not heard of takes no VM with a mask: who would pin it, and end the pause it starts with? */
export function maskUnheard({ kind, text }: Refused): Refused {
  return refuse(kind, `CPU mask cannot be applied: ${text}`);
}
