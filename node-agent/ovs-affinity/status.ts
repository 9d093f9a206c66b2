import type { AssignmentsView } from '../assignments/view.ts';
import type { OvsProcesses } from './ovs-processes.ts';
import type { Problem } from './problems.ts';
import type { Targets } from './targets.ts';

/** One thread, for people and for JSON. */
export interface ThreadStatus {
  readonly tid: number;
  readonly name: string;
  /** CPUs that the kernel lets it run on, as a list. */
  readonly allowed: string;
  /** CPUs of this machine that it should be on; null for one that is left alone, and while nothing is set. */
  readonly wanted: string | null;
  /** `pmd` (left alone), `clipped` (by its cpuset), the errno it was refused with, or null. */
  readonly note: string | null;
}

export interface OvsStatus {
  readonly enabled: boolean;
  readonly enablerFile: string;
  /** CPUs that the ordinary threads should be on; null while nothing is set. */
  readonly wanted: string | null;
  readonly why: readonly string[];
  readonly problems: readonly string[];
  /** Where it is known from who owns which CPUs, and what is wrong with a source; null where nothing is. */
  readonly sources: readonly { readonly name: string; readonly problem: string | null }[];
  readonly processes: readonly {
    readonly name: string;
    readonly role: string;
    readonly pid: number;
    readonly threads: readonly ThreadStatus[];
  }[];
}

export interface StatusParts {
  readonly enabled: boolean;
  readonly enablerFile: string;
  readonly ovsProcesses: Pick<OvsProcesses, 'describe' | 'machine' | 'unmanaged'>;
  readonly targets: Pick<Targets, 'wanted' | 'why' | 'readsContainers'>;
  readonly sources: AssignmentsView['sources'];
  /** Of the last pass. */
  readonly problems: readonly Problem[];
}

/** What `plumbline ovs status` shows. Reads every thread's mask now; changes none. */
export function statusOf({ enabled, enablerFile, ovsProcesses, targets, sources, problems }: StatusParts): OvsStatus {
  const processes = ovsProcesses.describe();
  // A daemon may have ended since the last pass.
  const texts = [...problems, ...(enabled ? ovsProcesses.unmanaged() : [])].map(({ text }) => text);
  const here = targets.wanted?.intersect(ovsProcesses.machine()).toString() ?? null;
  return {
    enabled,
    enablerFile,
    wanted: targets.wanted?.toString() ?? null,
    why: targets.why,
    problems: [...new Set(texts)],
    sources: [
      { name: 'cpu_manager_state', problem: sources.checkpoint ?? null },
      { name: 'PodResources', problem: sources.podResources ?? null },
      {
        name: 'cgroups',
        problem: targets.readsContainers ? null : 'the kubelet’s cgroups are not found (--cgroup-root)',
      },
    ],
    processes: processes.map(({ name, role, pid, threads }) => ({
      name,
      role,
      pid,
      threads: threads.map(({ tid, name: comm, allowed, note }) => ({
        tid,
        name: comm,
        allowed: allowed.toString(),
        wanted: note === 'pmd' ? null : here,
        note: note ?? null,
      })),
    })),
  };
}
