import { formatMask } from '../../model/cpu-mask/mask.ts';
import type { CpuSet } from '../../model/cpu-set.ts';
import type { GuestThread } from './guest.ts';
import type { LauncherView } from './launcher-pinning.ts';
import { maskOverlaps } from './states.ts';

/** The output of `plumbline vm status`, as of the last check. */
export interface VmStatus {
  readonly vms: readonly OneVm[];
  /** Pairs of VMs, as `namespace/name`, that are pinned to some of the same CPUs. */
  readonly overlaps: readonly { readonly vms: readonly [string, string]; readonly cpus: string }[];
}

interface OneVm {
  readonly namespace: string;
  readonly vmi: string;
  readonly podName: string;
  readonly podUID: string;
  /** Null while QEMU does not run. */
  readonly pid: number | null;
  /** The cpuset of its container. */
  readonly container: string;
  readonly mask: string | null;
  /** pinned, unpinned or refused; null without a mask or a result. */
  readonly state: string | null;
  readonly message: string | null;
  /** CPUs of the cgroup housekeeping; null if there is none. */
  readonly housekeeping: string | null;
  readonly problems: readonly string[];
  readonly threads: readonly {
    readonly tid: number;
    readonly name: string;
    readonly role: string;
    readonly allowed: string;
    /** Null for a thread that the agent does not place. */
    readonly wanted: string | null;
  }[];
}

/** @param allowedNow the CPUs that a thread may use at this moment; undefined if it has ended */
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
    problems: housekeeping?.problems ?? [],
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
