import { unionOf } from '../../model/cpu-set.ts';
import { type MaskWish, wishKey } from '../../model/launcher/mask-wish.ts';
import { fitMask, maskHostOf } from '../../model/placement/mask-fit.ts';
import { type Refused, refuse } from '../../model/placement/verdict.ts';
import type { Fleet } from '../cluster/fleet.ts';

/** What becomes of a VM's CPU mask on a node: the VM is refused, the mask is kept, or `all` takes its place. */
export type MaskOutcome = Refused | 'kept' | 'fell-back';

/** Wishes, and node states for each, that are remembered; when there are more all are forgotten. */
const WISHES = 32;
const STATES = 4096;

/**
 * What becomes of a VM's CPU mask on a node that has reported. Nodes of one make whose pods own the same CPUs are
 * judged once.
 */
export function createMaskOutcomes(fleet: Fleet): (wish: MaskWish, id: number) => MaskOutcome {
  const known = new Map<string, Map<string, MaskOutcome>>();

  const judge = (wish: MaskWish, id: number): MaskOutcome => {
    const shape = fleet.shape(id);
    if (shape === undefined) throw new RangeError(`node ${fleet.names.nameOf(id)} has not reported its CPUs`);
    const fit = fitMask(wish, maskHostOf({ ...shape.empty, owned: unionOf(fleet.assigned(id)) }));
    if (!fit.fits) return refuse('cpu-mask', fit.short, fit.text);
    return fit.fellBack ? 'fell-back' : 'kept';
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
    let outcome = states.get(load);
    if (outcome === undefined) {
      outcome = judge(wish, id);
      if (states.size >= STATES) states.clear();
      states.set(load, outcome);
    }
    return outcome;
  };
}
