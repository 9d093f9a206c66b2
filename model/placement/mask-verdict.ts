import type { MaskRequest } from '../launcher/mask-request.ts';
import { fitMask, type MaskHost } from './mask-fit.ts';
import { type NodeVerdict, type Refused, refuse, UNCHECKED } from './verdict.ts';

/**
 * The verdict for a node that lacks CPUs of the mask, if the user allows `all` instead: the VM may use all of its CPUs.
 */
export const MASK_FALLS_BACK: NodeVerdict = Object.freeze({
  ...UNCHECKED,
  warnings: ['lacks CPUs of the CPU mask: the VM runs on all CPUs there, if no other node can keep the mask'],
});

/** The verdict about a mask on a node with a current report. */
export function judgeMask(maskRequest: MaskRequest, host: MaskHost): NodeVerdict {
  const fit = fitMask(maskRequest, host);
  if (!fit.fits) return refuse('cpu-mask', fit.short, fit.text);
  return fit.fellBack ? MASK_FALLS_BACK : UNCHECKED;
}

/**
 * Changes the refusal of a node without a current report for VMs with a mask: without its agent, no component would pin
 * the VM or end its pause at the start.
 */
export function maskUnheard({ kind, text }: Refused): Refused {
  return refuse(kind, `CPU mask cannot be applied: ${text}`);
}
