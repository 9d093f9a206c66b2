import { MAX_PINNING_MESSAGE, type PinningState } from '../../kube/node-topology.ts';
import type { OneVm, VmStatus } from '../../model/agent-status.ts';
import { type Overlap, overlaps } from '../../model/cpu-mask/host-pins.ts';
import { briefMask, entryOf, formatMask, isForWholeVm } from '../../model/cpu-mask/mask.ts';
import { type CpuSet, unionOf } from '../../model/cpu-set.ts';
import type { GuestThread } from './guest.ts';
import type { LauncherView } from './launcher-pinning.ts';

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

/** The report's entries for the VMs with a mask, sorted by pod uid. */
export function pinningStates(views: readonly LauncherView[]): PinningState[] {
  return views.flatMap((view) => stateOf(view) ?? []).sort((a, b) => (a.podUID < b.podUID ? -1 : 1));
}

function stateOf({ launcher, mask, threads }: LauncherView): PinningState | undefined {
  if (mask === undefined) return undefined;
  const { uid: podUID, namespace, podName } = launcher;
  const { state, reason, message } = mask;
  return {
    podUID,
    namespace,
    podName,
    state,
    vcpus: threads.filter(({ role }) => role.kind === 'vcpu').length,
    ...(reason === undefined ? {} : { reason }),
    ...(message === undefined ? {} : { message: message.slice(0, MAX_PINNING_MESSAGE) }),
  };
}

/** The VMs that are pinned to some of the same CPUs. It ignores vCPUs that may run anywhere: they overlap with all VMs. */
export function maskOverlaps(views: readonly LauncherView[]): readonly Overlap<LauncherView>[] {
  return overlaps(
    views.flatMap((vm) => {
      const maskRequest = vm.launcher.maskRequest;
      if (maskRequest === undefined || vm.mask === undefined) return [];
      const pins = vm.mask.pins.filter(({ vcpu }) => (entryOf(maskRequest.mask, vcpu) ?? 'all') !== 'all');
      return pins.length === 0 ? [] : [{ vm, cpus: unionOf(pins.map(({ cpus }) => cpus)) }];
    }),
  );
}

/** `vCPU 0 on 1-2, vCPU 1 on 3`, or `the whole VM on 1-2`, for display. */
export function pinsText({ launcher, mask }: LauncherView): string {
  if (mask === undefined || launcher.maskRequest === undefined) return '';
  const text = `CPU mask ${briefMask(launcher.maskRequest.mask)}`;
  if (mask.pins.length === 0) return `${text}: ${mask.message ?? 'nothing is pinned'}`;
  const [first] = mask.pins;
  const where = isForWholeVm(launcher.maskRequest.mask)
    ? `the whole VM on ${first?.cpus}`
    : mask.pins.map(({ vcpu, cpus }) => `vCPU ${vcpu} on ${cpus}`).join(', ');
  return `${text}: ${where}${mask.message === undefined ? '' : `; ${mask.message}`}`;
}
