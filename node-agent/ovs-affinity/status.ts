import type { OvsStatus } from '../../model/agent-status.ts';
import type { AssignmentsView } from '../assignments/view.ts';
import type { OvsProcesses } from './ovs-processes.ts';
import type { Problem } from './problems.ts';
import type { Targets } from './targets.ts';

export interface StatusParts {
  readonly enabled: boolean;
  readonly enablerFile: string;
  readonly ovsProcesses: Pick<OvsProcesses, 'describe' | 'machine' | 'unmanaged'>;
  readonly targets: Pick<Targets, 'wanted' | 'why' | 'readsContainers'>;
  readonly sources: AssignmentsView['sources'];
  /** The problems of the last pass. */
  readonly problems: readonly Problem[];
}

/** Builds the output of `plumbline ovs status`. It reads every thread's current mask and changes none. */
export function statusOf({ enabled, enablerFile, ovsProcesses, targets, sources, problems }: StatusParts): OvsStatus {
  const processes = ovsProcesses.describe();
  // A daemon may have ended since the last pass.
  const texts = [...problems, ...(enabled ? ovsProcesses.unmanaged() : [])].map(({ text }) => text);
  const here = targets.wanted?.intersect(ovsProcesses.machine()).toString() ?? null;
  return {
    enabled,
    enablerFile,
    wanted: targets.wanted?.toString() ?? null,
    why: [...targets.why],
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
