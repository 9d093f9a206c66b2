import type { CpuSet } from '../../model/cpu-set.ts';
import type { Affinity } from '../../native/affinity.ts';
import { moveThreads } from '../../native/pin-threads.ts';
import type { CgroupTree } from '../processes/cgroup-tree.ts';
import type { GuestThread } from './guest.ts';

/** What keeps the threads of a VM that are no vCPUs. */
export interface WholeVmParts {
  readonly affinity: Affinity;
  readonly tree: Pick<CgroupTree, 'housekeeping' | 'setHousekeeping'>;
}

/** The state of a VM's threads other than vCPUs. */
export interface OthersOutcome {
  readonly moved: number;
  /** Those that the kernel leaves on other CPUs. */
  readonly left: readonly GuestThread[];
}

const WORDS_PER_LONG = 2;

/**
 * Puts the emulator's and IO threads on the CPUs of a mask for the whole VM, each as far as the kernel moves it:
 * io_uring's workers, for one, are the kernel's to place.
 *
 * KubeVirt makes its cgroup `housekeeping` for emulators with a CPU of their own only, which no VM with a mask has. If
 * there is one anyway, it gets the mask's CPUs first: virt-handler writes it again at each of its syncs, and the next
 * check corrects both.
 * @param path the container's cgroup
 */
export function keepOthers(
  { affinity, tree }: WholeVmParts,
  path: string,
  others: readonly GuestThread[],
  cpus: CpuSet,
): OthersOutcome {
  openHousekeeping(tree, path, cpus);
  const astray = others.filter(({ allowed }) => !allowed.equals(cpus));
  const { there, left } = moveThreads(
    affinity,
    astray.map(({ tid }) => tid),
    cpus.toWords(WORDS_PER_LONG),
  );
  const leftTids = new Set(left);
  return { moved: there.length, left: astray.filter(({ tid }) => leftTids.has(tid)) };
}

/** Has the cgroup `housekeeping`, where there is one, hold just these CPUs. One that cannot be written confines as before. */
export function openHousekeeping(tree: WholeVmParts['tree'], path: string, cpus: CpuSet): void {
  const current = tree.housekeeping(path);
  if (current === undefined || current.equals(cpus)) return;
  try {
    tree.setHousekeeping(path, cpus);
  } catch {
    // Its threads are then among those that the kernel leaves elsewhere, which is reported.
  }
}

/** For the VM's status: what of it is not where the mask says; undefined if all of it is. */
export function leftText(left: readonly GuestThread[]): string | undefined {
  const [first] = left;
  if (first === undefined) return undefined;
  return `the kernel leaves ${left.length} threads other than vCPUs elsewhere, such as ${first.tid} (${first.name}) on ${first.allowed.brief}`;
}
