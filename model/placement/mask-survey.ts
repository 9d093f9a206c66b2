import { type MaskedTemplate, type MaskRequest, maskRefusals, maskRequestOf } from '../launcher/mask-request.ts';
import { type SelectableNode, type SelectingSpec, selectionKey, selectsNode } from '../launcher/node-selection.ts';
import { fitMask, type MaskFit, type MaskHost } from './mask-fit.ts';

/** A VM with a mask. */
export interface MaskedVm {
  /** Undefined if the mask is invalid. */
  readonly maskRequest: MaskRequest | undefined;
  /** Why no node is checked: the mask cannot be parsed or does not match the VM. */
  readonly fault: string | undefined;
  /** The nodes that it may run on. */
  readonly selection: SelectingSpec;
}

/** Characters of the selectors as JSON. They are compared with every node. */
const MAX_SELECTION_CHARACTERS = 16 * 1024;

/** A VM or VMI with a mask that pins something or that is invalid; undefined for any other. */
export function maskedVmOf(template: MaskedTemplate & { readonly spec: SelectingSpec }): MaskedVm | undefined {
  const { nodeSelector, affinity } = template.spec;
  const selection = { nodeSelector, affinity };
  const [fault] = maskRefusals(template);
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

/** The result for a VM's mask on a node that the VM may run on. */
export type MaskVerdict =
  | MaskFit
  | { readonly fits: false; readonly reason: 'no-report' | 'fault'; readonly short: string; readonly text: string };

/** The verdicts of all nodes that a VM's selectors match. */
export function surveyMask<N extends SurveyedNode>(
  { maskRequest, fault = '', selection }: MaskedVm,
  nodes: readonly N[],
): readonly { readonly node: N; readonly verdict: MaskVerdict }[] {
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

function verdictOn(maskRequest: MaskRequest | undefined, fault: string, { host }: SurveyedNode): MaskVerdict {
  if (maskRequest === undefined) return { fits: false, reason: 'fault', short: fault, text: fault };
  if (host !== undefined) return fitMask(maskRequest, host);
  const text = 'the node does not report its topology';
  return { fits: false, reason: 'no-report', short: text, text };
}
