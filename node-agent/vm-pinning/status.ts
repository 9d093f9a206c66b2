import { formatMask } from '../../model/cpu-mask/mask.ts';
import type { CpuSet } from '../../model/cpu-set.ts';
import type { OneVm, VmStatus } from '../../model/launcher/vm-status.ts';
import type { GuestThread } from './guest.ts';
import type { LauncherView } from './launcher-pinning.ts';
import { maskOverlaps } from './states.ts';

/**
 * The output of `plumbline vm status`, as of the last check.
 * @param allowedNow the CPUs that a thread may use at this moment; undefined if it has ended
 */
export function statusOf(views: readonly LauncherView[], allowedNow: (tid: number) => CpuSet | undefined): VmStatus {
  const nameOf = ({ launcher }: LauncherView) => `${launcher.namespace}/${launcher.vmi.name}`;
  return {
    vms: views
      .map((view) => vmOf(view, allowedNow))
      .sort((a, b) => compare(a.namespace, b.namespace) || compare(a.vmi, b.vmi)),
    overlaps: maskOverlaps(views).map(({ a, b, cpus }) => ({ vms: [nameOf(a), nameOf(b)], cpus: cpus.toString() })),
  };
}

function vmOf(view: LauncherView, allowedNow: (tid: number) => CpuSet | undefined): OneVm {
  const { launcher, pid, container, threads, mask, housekeeping } = view;
  const wanted = new Map([...(mask?.wanted ?? []), ...(housekeeping?.wanted ?? [])]);
  return {
    namespace: launcher.namespace,
    vmi: launcher.vmi.name,
    podName: launcher.podName,
    podUID: launcher.uid,
    pid: pid ?? null,
    container: container.toString(),
    mask: launcher.maskRequest === undefined ? null : formatMask(launcher.maskRequest.mask),
    state: mask?.state ?? null,
    message: mask?.message ?? null,
    housekeeping: housekeeping?.cgroup.toString() ?? null,
    problems: [...(housekeeping?.problems ?? [])],
    threads: threads.flatMap(({ tid, name, role }) => {
      const allowed = allowedNow(tid)?.toString();
      if (allowed === undefined) return [];
      return [{ tid, name, role: roleText(role), allowed, wanted: wanted.get(tid)?.toString() ?? null }];
    }),
  };
}

function roleText(role: GuestThread['role']): string {
  return role.kind === 'vcpu' ? `vCPU ${role.index}` : role.kind;
}

function compare(a: string, b: string): number {
  return a < b ? -1 : Number(a > b);
}
