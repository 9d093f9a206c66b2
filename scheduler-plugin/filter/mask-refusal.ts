import { unionOf } from '../../model/cpu-set.ts';
import { type MaskWish, wishKey } from '../../model/launcher/mask-wish.ts';
import { fitMask, maskHostOf } from '../../model/placement/mask-fit.ts';
import { type Refused, refuse } from '../../model/placement/verdict.ts';
import type { Fleet } from '../cluster/fleet.ts';

/** Wishes, and node states for each, that are remembered; when there are more all are forgotten. */
const WISHES = 32;
const STATES = 4096;

/**
 * Why a node that has reported cannot keep a VM's CPU mask, or undefined if it can. Nodes of one make whose pods own
 * the same CPUs are judged once.
 */
export function createMaskRefusals(fleet: Fleet): (wish: MaskWish, id: number) => Refused | undefined {
  const known = new Map<string, Map<string, Refused | undefined>>();

  const judge = (wish: MaskWish, id: number): Refused | undefined => {
    const shape = fleet.shape(id);
    if (shape === undefined) return undefined;
    const fit = fitMask(wish, maskHostOf({ ...shape.empty, owned: unionOf(fleet.assigned(id)) }));
    return fit.fits ? undefined : refuse('cpu-mask', fit.short, fit.text);
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
    if (!states.has(load)) {
      if (states.size >= STATES) states.clear();
      states.set(load, judge(wish, id));
    }
    return states.get(load);
  };
}
