import type { CpuSet } from '../../model/cpu-set.ts';
import type { Affinity } from '../../native/affinity.ts';
import { moveThreads } from '../../native/pin-threads.ts';
import type { CgroupTree } from '../processes/cgroup-tree.ts';
import type { GuestThread } from './guest.ts';

/** The access to threads and cgroups that `keepOthers` needs. */
export interface WholeVmParts {
  readonly affinity: Affinity;
  readonly tree: Pick<CgroupTree, 'housekeeping' | 'setHousekeeping'>;
}

/** The state of a VM's threads other than vCPUs. */
export interface OthersOutcome {
  readonly moved: number;
  /** Threads that the kernel leaves on other CPUs. */
  readonly left: readonly GuestThread[];
}

const WORDS_PER_LONG = 2;

/**
 * Moves the emulator's and IO threads to the CPUs of a mask for the whole VM, as far as the kernel allows: it places
 * io_uring's workers itself, for example.
 *
 * KubeVirt creates its cgroup `housekeeping` only for emulators with their own CPU, which no VM with a mask has. If it
 * exists anyway, it gets the mask's CPUs first: virt-handler writes it again at each of its syncs, and the next check
 * corrects both.
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

/** Sets an existing cgroup `housekeeping` to these CPUs. If writing fails, it confines its threads as before. */
export function openHousekeeping(tree: WholeVmParts['tree'], path: string, cpus: CpuSet): void {
  const current = tree.housekeeping(path);
  if (current === undefined || current.equals(cpus)) return;
  try {
    tree.setHousekeeping(path, cpus);
  } catch {
    // The kernel then leaves its threads on other CPUs, which is reported.
  }
}

/** The threads that are not on the mask's CPUs, for the VM's status; undefined if there are none. */
export function leftText(left: readonly GuestThread[]): string | undefined {
  const [first] = left;
  if (first === undefined) return undefined;
  return `the kernel leaves ${left.length} threads other than vCPUs elsewhere, such as ${first.tid} (${first.name}) on ${first.allowed.brief}`;
}
