import { CpuSet } from '../model/cpu-set.ts';
import { groupBy } from '../model/lists.ts';

/** A has the lowest CPU, more pods repeat letters. R and P stand for reserved and polled CPUs. */
export const OWNER_LETTERS = 'ABCDEFGHIJKLMNOQSTUVWXYZabcdefghijklmnoqrstuvwxyz';

/** @param index of the pod in `ownersByCpu` */
export const ownerLetter = (index: number): string => OWNER_LETTERS[index % OWNER_LETTERS.length]!;

/** The entries of each pod, the pod with the lowest CPU first. */
export function ownersByCpu<Owner extends { readonly podUID: string; readonly cpus: string }>(
  owners: readonly Owner[],
): Owner[][] {
  const lowest = new Map(owners.map((owner) => [owner, CpuSet.parse(owner.cpus).first ?? 0]));
  const lowestOf = (pod: readonly Owner[]) => Math.min(...pod.map((owner) => lowest.get(owner)!));
  return [...groupBy(owners, ({ podUID }) => podUID).values()].sort((a, b) => lowestOf(a) - lowestOf(b));
}
