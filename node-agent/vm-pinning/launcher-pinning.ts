import { CpuSet } from '../../model/cpu-set.ts';
import type { Host } from '../../model/host.ts';
import type { CgroupTree } from '../processes/cgroup-tree.ts';
import { findGuest, type GuestParts, type GuestThread, type QemuGuest } from './guest.ts';
import { createHousekeeping, type HousekeepingOutcome } from './housekeeping.ts';
import type { Launcher } from './launchers.ts';
import { createMaskPinning, type MaskOutcome } from './mask-pinning.ts';
import type { PinRecord } from './pins-file.ts';

export interface NodeCpus {
  readonly host: Host | undefined;
  /** Undefined while the kubelet has not answered; no mask is applied then. */
  readonly reserved: CpuSet | undefined;
  readonly owned: CpuSet;
  /** Pods whose `compute` container owns CPUs. */
  readonly dedicated: ReadonlySet<string>;
}

export interface LauncherView {
  readonly launcher: Launcher;
  /** Undefined while QEMU does not run. */
  readonly pid: number | undefined;
  readonly container: CpuSet;
  readonly threads: readonly GuestThread[];
  /** Undefined without a mask, and while there is no result. */
  readonly mask: MaskOutcome | undefined;
  readonly housekeeping: HousekeepingOutcome | undefined;
}

export interface LauncherPinningParts extends GuestParts {
  readonly tree: CgroupTree;
  readonly record: PinRecord;
}

interface Running {
  readonly guest: QemuGuest;
  readonly masks: ReturnType<typeof createMaskPinning>;
  readonly keepHousekeeping: ReturnType<typeof createHousekeeping>;
}

/** Keeps the threads of one launcher's guest on their CPUs, from check to check. */
export type LauncherPinning = ReturnType<typeof createLauncherPinning>;

export function createLauncherPinning(parts: LauncherPinningParts) {
  const { tree, record } = parts;
  let place: { readonly id: string; readonly path: string } | undefined;
  let running: Running | undefined;

  const placeOf = ({ uid, containerId }: Launcher): string | undefined => {
    if (containerId === undefined) return undefined;
    if (place?.id !== containerId) {
      const path = tree.container(uid, containerId);
      place = path === undefined ? undefined : { id: containerId, path };
      running = undefined;
    }
    return place?.path;
  };

  const masksOf = (podUID: string, path: string, { pid, start, affinity }: QemuGuest) =>
    createMaskPinning({
      affinity,
      tree,
      path,
      now: parts.now,
      scopeBefore: record.scope(podUID, { pid, start }),
      remember: (scope) =>
        scope === undefined ? record.forget(podUID) : record.remember({ podUID, pid, start, scope }),
    });

  const guestIn = (podUID: string, path: string) => {
    // A QEMU without vCPU threads may be the one that libvirt starts to query its capabilities.
    if (running?.guest.isAlive() === true && running.guest.isReady()) return running;
    const guest = findGuest(tree.processes(path) ?? [], parts);
    if (guest === undefined) running = undefined;
    else if (running?.guest.pid !== guest.pid || running.guest.start !== guest.start) {
      const keepHousekeeping = createHousekeeping({ ...parts, affinity: guest.affinity });
      running = { guest, masks: masksOf(podUID, path, guest), keepHousekeeping };
    }
    return running;
  };

  return {
    reconcile(launcher: Launcher, node: NodeCpus): LauncherView {
      const path = placeOf(launcher);
      const cpuset = path === undefined ? undefined : tree.cpuset(path);
      const running = path === undefined || cpuset === undefined ? undefined : guestIn(launcher.uid, path);
      const idle: LauncherView = {
        launcher,
        pid: undefined,
        container: cpuset ?? CpuSet.EMPTY,
        threads: [],
        mask: refusalOf(launcher, node),
        housekeeping: undefined,
      };
      if (path === undefined || cpuset === undefined || running === undefined) {
        if (cpuset === undefined) place = undefined;
        return idle;
      }
      const { guest, masks, keepHousekeeping } = running;
      const threads = guest.list();
      const view = { ...idle, pid: guest.pid, threads };
      if (node.dedicated.has(launcher.uid)) {
        return { ...view, housekeeping: keepHousekeeping({ path, cpuset, guest, threads, host: node.host }) };
      }
      if (launcher.maskRequest === undefined) {
        masks.release(threads, cpuset);
        return view;
      }
      if (node.reserved === undefined || node.host === undefined) return view;
      const withheld = node.reserved.union(node.owned);
      const { mask, fixMismatch } = launcher.maskRequest;
      const { migrated: mayBePlugged } = launcher;
      const { online } = node.host;
      return {
        ...view,
        mask: masks.keep({ mask, fixMismatch, online, container: cpuset, withheld, mayBePlugged }, threads),
      };
    },

    /** Moves threads that a mask had moved back to the CPUs of the container. */
    release() {
      if (running === undefined || place === undefined || !running.guest.isAlive()) return;
      const cpuset = tree.cpuset(place.path);
      if (cpuset !== undefined) running.masks.release(running.guest.list(), cpuset);
    },
  };
}

/** Why a mask is not applied, whether or not the guest runs. */
function refusalOf({ maskRequest, problem, uid }: Launcher, { dedicated }: NodeCpus): MaskOutcome | undefined {
  const refused = (reason: string, message: string): MaskOutcome => {
    return { state: 'refused', reason, message, targets: new Map(), pins: [], moved: 0 };
  };
  if (problem !== undefined) return refused('Parse', problem);
  if (maskRequest === undefined || !dedicated.has(uid)) return undefined;
  return refused('Dedicated', 'a VM with dedicated CPUs cannot have a CPU mask: KubeVirt pins its vCPUs');
}

/** Milliseconds after the first sight of its container within which a VM should have its vCPU threads. */
const MAX_STARTING_MILLISECONDS = 60_000;

interface CheckedLauncher {
  readonly launcher: Launcher;
  readonly view: LauncherView;
  /** When its container was first seen, in monotonic milliseconds. */
  readonly since: number | undefined;
}

/** @param onForgotten called with the uid of each launcher that is no longer managed */
export function createLauncherChecks(parts: LauncherPinningParts, onForgotten: (uid: string) => void) {
  const pinnings = new Map<string, LauncherPinning>();
  const checked = new Map<string, CheckedLauncher>();

  const forgetOthers = (uids: ReadonlySet<string>) => {
    for (const [uid, pinning] of pinnings) {
      if (uids.has(uid)) continue;
      // A pod that still exists has lost its mask.
      pinning.release();
      pinnings.delete(uid);
      checked.delete(uid);
      onForgotten(uid);
    }
  };

  const isStarting = ({ launcher: { maskRequest }, view: { mask }, since }: CheckedLauncher) =>
    maskRequest !== undefined &&
    mask === undefined &&
    since !== undefined &&
    performance.now() - since < MAX_STARTING_MILLISECONDS;

  const reconcile = (launcher: Launcher, node: NodeCpus, onlyStarting: boolean): LauncherView => {
    const { uid } = launcher;
    const last = checked.get(uid);
    if (onlyStarting && last?.launcher === launcher && !isStarting(last)) return unchanged(last.view);
    const since = last?.since ?? (launcher.containerId === undefined ? undefined : performance.now());
    const pinning = pinnings.get(uid) ?? createLauncherPinning(parts);
    pinnings.set(uid, pinning);
    const view = pinning.reconcile(launcher, node);
    checked.set(uid, { launcher, view, since });
    return view;
  };

  return {
    /** Releases all others that were checked before. @param onlyStarting reuses the last check of those that run */
    at(launchers: readonly Launcher[], node: NodeCpus, onlyStarting: boolean) {
      forgetOthers(new Set(launchers.map(({ uid }) => uid)));
      return launchers.map((launcher) => reconcile(launcher, node, onlyStarting));
    },
    /** Whether a VM with a mask is about to get its threads. No event reports that they exist. */
    hasStarting: () => [...checked.values()].some(isStarting),
    end() {
      pinnings.clear();
      checked.clear();
    },
  };
}

/** The view of a check that was not repeated, without the changes that the check made. */
function unchanged(view: LauncherView): LauncherView {
  const { mask, housekeeping } = view;
  return {
    ...view,
    mask: mask && { ...mask, moved: 0 },
    housekeeping: housekeeping && { ...housekeeping, repairs: 0 },
  };
}
