import { unionOf } from '../../model/cpu-set.ts';
import { type MaskRequest, maskRequestKey } from '../../model/launcher/mask-request.ts';
import { maskHostOf } from '../../model/placement/mask-fit.ts';
import { judgeMask } from '../../model/placement/mask-verdict.ts';
import type { NodeVerdict } from '../../model/placement/verdict.ts';
import type { Fleet } from '../cluster/fleet.ts';

/** Maximum mask requests, and node states for each. Beyond that, all are forgotten. */
const REQUESTS = 32;
const STATES = 4096;

/**
 * The verdict of a node that has reported on a VM's CPU mask. Nodes of the same model whose pods own the same CPUs are
 * judged once.
 */
export function createMaskVerdicts(fleet: Fleet): (maskRequest: MaskRequest, id: number) => NodeVerdict {
  const known = new Map<string, Map<string, NodeVerdict>>();

  const judge = (maskRequest: MaskRequest, id: number): NodeVerdict => {
    const shape = fleet.shape(id);
    if (shape === undefined) throw new RangeError(`node ${fleet.names.nameOf(id)} has not reported its CPUs`);
    return judgeMask(maskRequest, maskHostOf({ ...shape.empty, owned: unionOf(fleet.assigned(id)) }));
  };
  return (maskRequest, id) => {
    const key = maskRequestKey(maskRequest);
    let states = known.get(key);
    if (states === undefined) {
      if (known.size >= REQUESTS) known.clear();
      states = new Map();
      known.set(key, states);
    }
    const load = fleet.load(id);
    let verdict = states.get(load);
    if (verdict === undefined) {
      verdict = judge(maskRequest, id);
      if (states.size >= STATES) states.clear();
      states.set(load, verdict);
    }
    return verdict;
  };
}
