import { nodeTarget } from '../../kube/events.ts';
import { MAX_PINNING_MESSAGE_CHARACTERS, type PinningState } from '../../kube/node-topology.ts';
import type { OneVm, VmStatus } from '../../model/agent-status.ts';
import { type Overlap, overlaps } from '../../model/cpu-mask/host-pins.ts';
import { briefMask, entryOf, formatMask, isForWholeVm } from '../../model/cpu-mask/mask.ts';
import { type CpuSet, unionOf } from '../../model/cpu-set.ts';
import { cut, few } from '../../model/errors.ts';
import { vmiObject } from '../../model/launcher/recognize.ts';
import { byText } from '../../model/lists.ts';
import { Durations } from '../../runtime/problem-log.ts';
import type { Services } from '../lifecycle/duty.ts';
import type { LauncherView } from './launcher-pinning.ts';
import type { Launcher } from './launchers.ts';

/** Maximum characters of a message, which is stored, compared at each check, logged and sent. */
const MAX_CHARACTERS = 1024;
/** Maximum overlaps in one Event. */
const MAX_NAMED_VMS = 8;

const REASONS = { pinned: 'CPUMaskApplied', unpinned: 'CPUMaskNotApplied', refused: 'CPUMaskRefused' } as const;

const HOUSEKEEPING = 'HousekeepingIncomplete';

/** The Event for each reason why a mask is applied, but not as written. */
const REMARKS = new Map([
  ['FellBack', 'CPUMaskFellBack'],
  ['OtherVCPUs', 'CPUMaskOtherVCPUs'],
]);

const nameOf = ({ namespace, vmi }: Launcher): string => `${namespace}/${vmi.name}`;

function namesOf(launcher: Launcher) {
  return { vmi: nameOf(launcher), pod: `${launcher.namespace}/${launcher.podName}` };
}

/**
 * Log lines, metrics and Events about the VMs. Owner: the duty. Age: as of the last pass. End: `forget`, when a launcher
 * is no longer managed.
 */
export class PinningReporting {
  readonly #deps: Omit<Services, 'client'>;
  readonly #reported = new Map<string, string>();
  readonly #durations = new Durations();
  #overlapsTold = '';

  constructor(deps: Omit<Services, 'client'>) {
    this.#deps = deps;
  }

  views(views: readonly LauncherView[]): void {
    const { metrics } = this.#deps;
    for (const view of views) {
      this.#reportMask(view);
      this.#reportHousekeeping(view);
      metrics.vmThreadMoves.inc({ cause: 'mask' }, view.mask?.moved ?? 0);
      metrics.vmThreadMoves.inc({ cause: 'housekeeping' }, view.housekeeping?.repairs ?? 0);
    }
    for (const state of Object.keys(REASONS)) {
      metrics.vmPinning.set({ state }, views.filter(({ mask }) => mask?.state === state).length);
    }
    const managed = views.filter(({ housekeeping }) => housekeeping !== undefined);
    const failing = managed.filter(({ housekeeping }) => housekeeping?.problems.length !== 0).length;
    metrics.vmHousekeeping.set({ state: 'kept' }, managed.length - failing);
    metrics.vmHousekeeping.set({ state: 'incomplete' }, failing);
  }

  /** Reports overlaps on the node, because only its administrator sees the VMs of all namespaces. */
  overlaps(pairs: readonly Overlap<LauncherView>[]): void {
    const { metrics, events, nodeName } = this.#deps;
    metrics.vmMaskOverlaps.set(pairs.length);
    const texts = pairs.map(({ a, b, cpus }) => `${nameOf(a.launcher)} and ${nameOf(b.launcher)} on ${cpus.brief}`);
    const text = few(texts, MAX_NAMED_VMS, MAX_CHARACTERS).join('; ');
    if (text === this.#overlapsTold) return;
    this.#overlapsTold = text;
    if (text === '') return;
    const message = `virtual machines share CPUs: ${text}`;
    events.record(nodeTarget(nodeName), { type: 'Warning', reason: 'CPUMasksOverlap', message });
  }

  forget(uid: string): void {
    for (const what of ['mask', 'emulator', 'housekeeping']) {
      this.#reported.delete(`${uid} ${what}`);
      this.#durations.end(`${uid} ${what}`);
    }
  }

  #reportMask(view: LauncherView): void {
    const { launcher, mask } = view;
    if (mask === undefined) return;
    const { state, reason, message = '' } = mask;
    const text = cut(state === 'pinned' ? pinsText(view) : message, MAX_CHARACTERS);
    if (!this.#isNews(`${launcher.uid} mask`, `${state} ${reason} ${text}`)) return;
    const remark = state === 'pinned' ? REMARKS.get(reason ?? '') : undefined;
    if (remark !== undefined) this.#record(launcher, 'Warning', remark, cut(message, MAX_CHARACTERS));
    else this.#record(launcher, state === 'pinned' ? 'Normal' : 'Warning', REASONS[state], text);
  }

  #reportHousekeeping({ launcher, housekeeping }: LauncherView): void {
    if (housekeeping === undefined) return;
    const { log } = this.#deps;
    const { problems, emulator } = housekeeping;
    if (this.#isNews(`${launcher.uid} emulator`, String(emulator)))
      log.info({ ...namesOf(launcher), cpus: emulator }, 'moved emulator threads');
    const text = cut(problems.join('; '), MAX_CHARACTERS);
    if (!this.#isNews(`${launcher.uid} housekeeping`, text)) return;
    if (text !== '') this.#record(launcher, 'Warning', HOUSEKEEPING, text);
    else {
      const lasted = this.#durations.end(`${launcher.uid} housekeeping`);
      log.info({ ...namesOf(launcher), was: HOUSEKEEPING, ...lasted }, 'recovered');
    }
  }

  #isNews(key: string, text: string): boolean {
    if ((this.#reported.get(key) ?? '') === text) return false;
    this.#reported.set(key, text);
    return true;
  }

  #record(launcher: Launcher, type: 'Normal' | 'Warning', event: string, message: string): void {
    const { events, log } = this.#deps;
    events.record(vmiObject(launcher.namespace, launcher.vmi), { type, reason: event, message });
    const fields = { ...namesOf(launcher), event, message };
    if (type === 'Normal') {
      log.info({ ...fields, ...this.#durations.end(`${launcher.uid} mask`) }, 'VM is on the CPUs of its mask');
      return;
    }
    this.#durations.begin(`${launcher.uid} ${event === HOUSEKEEPING ? 'housekeeping' : 'mask'}`);
    log.warn(fields, 'VM is not on the CPUs that it should use');
  }
}

/** As of the last check. @param allowedNow a thread's CPUs at this moment; undefined if it has ended */
export function statusOf(views: readonly LauncherView[], allowedNow: (tid: number) => CpuSet | undefined): VmStatus {
  return {
    vms: views.map((view) => vmOf(view, allowedNow)).sort(byText(({ namespace, vmi }) => `${namespace} ${vmi}`)),
    overlaps: maskOverlaps(views).map(({ a, b, cpus }) => ({
      vms: [nameOf(a.launcher), nameOf(b.launcher)],
      cpus: cpus.toString(),
    })),
  };
}

function vmOf(view: LauncherView, allowedNow: (tid: number) => CpuSet | undefined): OneVm {
  const { launcher, pid, container, threads, mask, housekeeping } = view;
  const targets = new Map([...(mask?.targets ?? []), ...(housekeeping?.targets ?? [])]);
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
      const roleText = role.kind === 'vcpu' ? `vCPU ${role.index}` : role.kind;
      return [{ tid, name, role: roleText, allowed, desired: targets.get(tid)?.toString() ?? null }];
    }),
  };
}

export function pinningStates(views: readonly LauncherView[]): PinningState[] {
  const states = views.flatMap(({ launcher: { uid: podUID, namespace, podName }, mask, threads }) => {
    if (mask === undefined) return [];
    const { state, reason, message } = mask;
    const vcpus = threads.filter(({ role }) => role.kind === 'vcpu').length;
    return {
      podUID,
      namespace,
      podName,
      state,
      vcpus,
      ...(reason !== undefined && { reason }),
      ...(message !== undefined && { message: message.slice(0, MAX_PINNING_MESSAGE_CHARACTERS) }),
    };
  });
  return states.sort(byText(({ podUID }) => podUID));
}

/** The VMs that are pinned to some of the same CPUs. It ignores vCPUs that may run anywhere: they overlap with all VMs. */
export function maskOverlaps(views: readonly LauncherView[]): readonly Overlap<LauncherView>[] {
  return overlaps(
    views.flatMap((vm) => {
      const { maskRequest } = vm.launcher;
      if (maskRequest === undefined || vm.mask === undefined) return [];
      const pins = vm.mask.pins.filter(({ vcpu }) => (entryOf(maskRequest.mask, vcpu) ?? 'all') !== 'all');
      return pins.length === 0 ? [] : [{ vm, cpus: unionOf(pins.map(({ cpus }) => cpus)) }];
    }),
  );
}

/** `vCPU 0 on 1-2, vCPU 1 on 3`, or `the whole VM on 1-2`, for display. */
export function pinsText({ launcher: { maskRequest }, mask }: LauncherView): string {
  if (mask === undefined || maskRequest === undefined) return '';
  const text = `CPU mask ${briefMask(maskRequest.mask)}`;
  if (mask.pins.length === 0) return `${text}: ${mask.message ?? 'nothing is pinned'}`;
  const where = isForWholeVm(maskRequest.mask)
    ? `the whole VM on ${mask.pins[0]?.cpus}`
    : mask.pins.map(({ vcpu, cpus }) => `vCPU ${vcpu} on ${cpus}`).join(', ');
  return `${text}: ${where}${mask.message === undefined ? '' : `; ${mask.message}`}`;
}
