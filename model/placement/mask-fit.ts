import { briefMask, type CpuMask, type MaskEntry, maskForHost, summaryOf } from '../cpu-mask/mask.ts';
import { CpuSet } from '../cpu-set.ts';
import { type MaskedTemplate, type MaskRequest, maskRefusals, maskRequestOf } from '../launcher/mask-request.ts';
import { type SelectableNode, type SelectingSpec, selectionKey, selectsNode } from '../launcher/node-selection.ts';
import type { PlacementHost } from './needs.ts';
import { type NodeVerdict, type Refused, refuse, UNCHECKED } from './verdict.ts';

export interface MaskHost {
  /** They may have gaps. */
  readonly online: CpuSet;
  /** CPUs of the shared pool without the reserved ones. */
  readonly usable: CpuSet;
  /** Whether its agent sets masks. Default: true. */
  readonly pinsVMs?: boolean | undefined;
}

export type MaskFit =
  /** `mask`: the one in the request, or `all` if the host lacks CPUs and the request allows that. */
  | { readonly fits: true; readonly mask: CpuMask; readonly fellBack: boolean }
  | {
      readonly fits: false;
      readonly reason: 'not-applied' | 'host-cpus' | 'no-usable-cpus' | 'no-report' | 'fault';
      /** Text with few distinct values: kube-scheduler counts nodes by it. */
      readonly short: string;
      readonly text: string;
    };

const NOT_APPLIED: MaskFit = Object.freeze({
  fits: false,
  reason: 'not-applied',
  short: 'node does not apply CPU masks',
  text: 'the node’s agent runs with --vm-pinning off: nothing sets the CPU mask there, or resumes a VM that starts paused for it',
});

/**
 * Its agent sets masks, it has every CPU by id, and each vCPU has one that is neither reserved nor exclusive to another
 * container: as the node's agent checks at the start of the VM.
 */
export function fitMask({ mask, fixMismatch }: MaskRequest, { online, usable, pinsVMs }: MaskHost): MaskFit {
  if (pinsVMs === false) return NOT_APPLIED;
  const chosen = maskForHost(mask, online, fixMismatch);
  if ('fault' in chosen) {
    return { fits: false, reason: 'host-cpus', short: 'node lacks CPUs of the CPU mask', text: chosen.fault };
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
    text: `the CPU mask ${briefMask(chosen.mask)} leaves ${whose} without a CPU: every CPU of ${empty instanceof CpuSet ? empty.brief : empty} is reserved or owned by another pod (free: ${usable.brief})`,
  };
}

export function maskHostOf({ host, reserved, owned, pinsVMs }: PlacementHost): MaskHost {
  return { online: host.online, usable: host.online.minus(reserved).minus(owned), pinsVMs };
}

/** The node lacks CPUs of the mask, and the user allows `all` instead. */
export const MASK_FALLS_BACK: NodeVerdict = Object.freeze({
  ...UNCHECKED,
  warnings: ['lacks CPUs of the CPU mask: the VM runs on all CPUs there, if no other node can keep the mask'],
});

export function judgeMask(maskRequest: MaskRequest, host: MaskHost): NodeVerdict {
  const fit = fitMask(maskRequest, host);
  if (!fit.fits) return refuse('cpu-mask', fit.short, fit.text);
  return fit.fellBack ? MASK_FALLS_BACK : UNCHECKED;
}

/** Without its agent, no component would pin the VM or end its pause at the start. */
export function maskNotReported({ kind, text }: Refused): Refused {
  return refuse(kind, `CPU mask cannot be applied: ${text}`);
}

export interface MaskedVm {
  /** Undefined if the mask is invalid. */
  readonly maskRequest: MaskRequest | undefined;
  /** The mask cannot be parsed or does not match the VM. */
  readonly fault: string | undefined;
  readonly selection: SelectingSpec;
}

/** Characters of the selectors as JSON. They are compared with every node. */
const MAX_SELECTION_CHARACTERS = 16 * 1024;

/** Undefined for a VM without a mask that pins something or is invalid. */
export function maskedVmOf(template: MaskedTemplate & { readonly spec: SelectingSpec }): MaskedVm | undefined {
  const { nodeSelector, affinity } = template.spec;
  const selection = { nodeSelector, affinity };
  const fault = maskRefusals(template).join('; ') || undefined;
  const maskRequest = fault === undefined ? maskRequestOf(template.metadata) : undefined;
  if (fault === undefined && maskRequest === undefined) return undefined;
  if (selectionKey(selection).length <= MAX_SELECTION_CHARACTERS) return { maskRequest, fault, selection };
  const text = `nodeSelector and affinity have more than ${MAX_SELECTION_CHARACTERS} characters`;
  return { maskRequest: undefined, fault: text, selection: {} };
}

export interface SurveyedNode extends SelectableNode {
  /** Undefined without a report. */
  readonly host: MaskHost | undefined;
}

export function surveyMask<N extends SurveyedNode>(
  { maskRequest, fault = '', selection }: MaskedVm,
  nodes: readonly N[],
): readonly { readonly node: N; readonly verdict: MaskFit }[] {
  return nodes
    .filter((node) => selectsNode(selection, node))
    .map((node) => ({ node, verdict: verdictOn(maskRequest, fault, node) }));
}

/** Whether some node that a VM may run on can apply its mask. */
export function hasMaskHost({ maskRequest, selection }: MaskedVm, nodes: Iterable<SurveyedNode>): boolean {
  if (maskRequest === undefined) return false;
  for (const node of nodes) {
    if (node.host !== undefined && fitMask(maskRequest, node.host).fits && selectsNode(selection, node)) return true;
  }
  return false;
}

function verdictOn(maskRequest: MaskRequest | undefined, fault: string, { host }: SurveyedNode): MaskFit {
  if (maskRequest === undefined) return { fits: false, reason: 'fault', short: fault, text: fault };
  if (host !== undefined) return fitMask(maskRequest, host);
  const text = 'the node does not report its topology';
  return { fits: false, reason: 'no-report', short: text, text };
}
