import { type MaskRequest, maskRequestKey } from '../../model/launcher/mask-request.ts';
import { maskHostOf } from '../../model/placement/mask-fit.ts';
import { judgeMask } from '../../model/placement/mask-verdict.ts';
import type { NodeVerdict } from '../../model/placement/verdict.ts';
import { type ClusterNode, ownedCpusOf } from '../cluster/cluster-node.ts';

/** Maximum mask requests, and node states for each. Beyond that, all are forgotten. */
const MAX_REQUESTS = 32;
const MAX_STATES = 4096;

/**
 * The verdict of a node that has reported on a VM's CPU mask. Nodes of the same model whose pods own the same CPUs are
 * judged once.
 */
export function createMaskVerdicts(): (maskRequest: MaskRequest, node: ClusterNode) => NodeVerdict {
  const verdicts = new Map<string, Map<string, NodeVerdict>>();

  const judge = (maskRequest: MaskRequest, node: ClusterNode): NodeVerdict => {
    if (node.shape === undefined) throw new RangeError(`node ${node.name} has not reported its CPUs`);
    return judgeMask(maskRequest, maskHostOf({ ...node.shape.empty, owned: ownedCpusOf(node) }));
  };
  return (maskRequest, node) => {
    const key = maskRequestKey(maskRequest);
    let states = verdicts.get(key);
    if (states === undefined) {
      if (verdicts.size >= MAX_REQUESTS) verdicts.clear();
      states = new Map();
      verdicts.set(key, states);
    }
    let verdict = states.get(node.load);
    if (verdict === undefined) {
      verdict = judge(maskRequest, node);
      if (states.size >= MAX_STATES) states.clear();
      states.set(node.load, verdict);
    }
    return verdict;
  };
}
