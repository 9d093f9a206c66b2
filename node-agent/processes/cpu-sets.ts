import { CpuSet } from '../../model/cpu-set.ts';

/** Masks at a time among the threads of a process: the one before, the one after, a few odd ones. */
const SETS_KEPT = 4;

/** Makes CPU sets of masks; threads are on few different ones, so those made last do for most. */
export function createSets(): (words: Uint32Array) => CpuSet {
  let made: { readonly words: Uint32Array; readonly set: CpuSet }[] = [];
  return (words) => {
    const known = made.find((one) => areEqual(one.words, words));
    if (known !== undefined) return known.set;
    const set = CpuSet.fromWords(words);
    made = [{ words, set }, ...made.slice(0, SETS_KEPT - 1)];
    return set;
  };
}

function areEqual(a: Uint32Array, b: Uint32Array): boolean {
  if (a === b) return true;
  if (a.length !== b.length) return false;
  for (let i = 0; i < a.length; i++) if (a[i] !== b[i]) return false;
  return true;
}
