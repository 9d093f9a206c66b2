import { type CpuMask, formatMask, parseMask, pinsNothing } from '../cpu-mask/mask.ts';
import { CPU_MASK_ANNOTATION, FIX_CPU_MISMATCH_ANNOTATION } from '../names.ts';
import type { MetaShape } from './shapes.ts';

/** The pinning request of a VM, or of a launcher, which has the VM's annotations. */
export interface MaskRequest {
  readonly mask: CpuMask;
  /** Whether to use `all` on a host that lacks CPUs of the mask. */
  readonly fixMismatch: boolean;
}

/**
 * The mask request of a template, a VMI or a launcher; undefined without a mask and for a mask that pins nothing. It
 * keeps the mask as text, because thousands of VMs may have one and tenants choose its size.
 * @throws ParseError if the mask cannot be parsed
 */
export function maskRequestOf({ annotations }: Pick<MetaShape, 'annotations'>): MaskRequest | undefined {
  const text = annotations?.[CPU_MASK_ANNOTATION];
  if (text === undefined) return undefined;
  const mask = parseMask(text);
  if (pinsNothing(mask)) return undefined;
  return new CachedMaskRequest(formatMask(mask), annotations?.[FIX_CPU_MISMATCH_ANNOTATION] === 'true');
}

/** The same text for equivalent requests. */
export function maskRequestKey(maskRequest: MaskRequest): string {
  const text = maskRequest instanceof CachedMaskRequest ? maskRequest.text : formatMask(maskRequest.mask);
  return maskRequest.fixMismatch ? `${text} or all` : text;
}

/** Number of cached masks; the least recently used one is dropped first. */
const READ = 64;
const read = new Map<string, CpuMask>();

class CachedMaskRequest implements MaskRequest {
  readonly fixMismatch: boolean;
  /** The canonical text. */
  readonly text: string;

  constructor(text: string, fixMismatch: boolean) {
    this.text = text;
    this.fixMismatch = fixMismatch;
  }

  get mask(): CpuMask {
    const mask = read.get(this.text) ?? parseMask(this.text);
    read.delete(this.text);
    const [oldest] = read.keys();
    if (read.size >= READ && oldest !== undefined) read.delete(oldest);
    read.set(this.text, mask);
    return mask;
  }
}
