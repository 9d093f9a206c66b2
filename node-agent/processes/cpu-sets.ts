import { CpuSet } from '../../model/cpu-set.ts';

/** Different masks among the threads of a process at a time: the previous one, the new one, a few exceptions. */
const SETS_KEPT = 4;

/** Creates CPU sets from masks. Threads share few different masks, so the last few sets are reused. */
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
