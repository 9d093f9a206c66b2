import { unionOf } from '../../model/cpu-set.ts';
import { type MaskWish, wishKey } from '../../model/launcher/mask-wish.ts';
import { maskHostOf } from '../../model/placement/mask-fit.ts';
import { judgeMask } from '../../model/placement/mask-verdict.ts';
import type { NodeVerdict } from '../../model/placement/verdict.ts';
import type { Fleet } from '../cluster/fleet.ts';

/** Wishes, and node states for each, that are remembered; when there are more all are forgotten. */
const WISHES = 32;
const STATES = 4096;

/**
 * What a node that has reported makes of a VM's CPU mask. Nodes of one make whose pods own the same CPUs are judged
 * once.
 */
export function createMaskVerdicts(fleet: Fleet): (wish: MaskWish, id: number) => NodeVerdict {
  const known = new Map<string, Map<string, NodeVerdict>>();

  const judge = (wish: MaskWish, id: number): NodeVerdict => {
    const shape = fleet.shape(id);
    if (shape === undefined) throw new RangeError(`node ${fleet.names.nameOf(id)} has not reported its CPUs`);
    return judgeMask(wish, maskHostOf({ ...shape.empty, owned: unionOf(fleet.assigned(id)) }));
  };
  return (wish, id) => {
    const key = wishKey(wish);
    let states = known.get(key);
    if (states === undefined) {
      if (known.size >= WISHES) known.clear();
      states = new Map();
      known.set(key, states);
    }
    const load = fleet.load(id);
    let verdict = states.get(load);
    if (verdict === undefined) {
      verdict = judge(wish, id);
      if (states.size >= STATES) states.clear();
      states.set(load, verdict);
    }
    return verdict;
  };
}
