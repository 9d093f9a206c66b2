import { maskForHost } from '../cpu-mask/check.ts';
import { briefMask, type CpuMask, type MaskEntry, summaryOf } from '../cpu-mask/mask.ts';
import { CpuSet } from '../cpu-set.ts';
import type { MaskRequest } from '../launcher/mask-request.ts';
import type { PlacementHost } from './needs.ts';

/** A host by the CPUs that a mask can choose among. */
export interface MaskHost {
  /** Ids, with whatever gaps there are. */
  readonly online: CpuSet;
  /** CPUs that containers without CPUs of their own run on, less the reserved ones. */
  readonly usable: CpuSet;
  /** Whether its agent sets masks. Default: true. */
  readonly pinsVMs?: boolean | undefined;
}

export type MaskFit =
  /** `mask` is the one that counts there: the request's own, or `all` where the host is too small and that was asked for. */
  | { readonly fits: true; readonly mask: CpuMask; readonly fellBack: boolean }
  | {
      readonly fits: false;
      readonly reason: 'not-applied' | 'host-cpus' | 'no-usable-cpus';
      /** Of few distinct values: kube-scheduler counts nodes by it. */
      readonly short: string;
      /** For people. */
      readonly text: string;
    };

const NOT_APPLIED: MaskFit = Object.freeze({
  fits: false,
  reason: 'not-applied',
  short: 'node does not apply CPU masks',
  text: 'the node’s agent runs with --vm-pinning off: nothing sets the CPU mask there, or resumes a VM that starts paused for it',
});

/**
 * Whether a host can keep a mask now: its agent sets masks, it has every CPU that is named, by id, and leaves each vCPU one that is neither
 * reserved nor some container's own. What the node's agent would say at start, before anything is started.
 */
export function fitMask({ mask, fixMismatch }: MaskRequest, { online, usable, pinsVMs }: MaskHost): MaskFit {
  if (pinsVMs === false) return NOT_APPLIED;
  const chosen = maskForHost(mask, online, fixMismatch);
  if ('fault' in chosen) {
    return { fits: false, reason: 'host-cpus', short: 'node lacks CPUs of the CPU mask', text: chosen.fault.message };
  }
  const leavesNone = (entry: MaskEntry) => (entry === 'all' ? usable.isEmpty : !entry.intersects(usable));
  const empty = summaryOf(chosen.mask).distinct.find(leavesNone);
  if (empty === undefined) return { fits: true, ...chosen };
  const vcpu = chosen.mask.entries.indexOf(empty);
  const whose = chosen.mask.entries.length === 1 ? 'every vCPU' : `vCPU ${vcpu}`;
  return {
    fits: false,
    reason: 'no-usable-cpus',
    short: 'CPU mask names no CPU that may be used on the node',
    text: `the CPU mask ${briefMask(chosen.mask)} leaves ${whose} no CPU: of ${empty instanceof CpuSet ? empty.brief : empty} none is free of reservation and of other pods (free: ${usable.brief})`,
  };
}

/** A node as its report has it. */
export function maskHostOf({
  host,
  reserved,
  owned,
  pinsVMs,
}: Pick<PlacementHost, 'host' | 'reserved' | 'owned' | 'pinsVMs'>): MaskHost {
  return { online: host.online, usable: host.online.minus(reserved).minus(owned), pinsVMs };
}
