import { CpuSet } from '../../model/cpu-set.ts';
import type { Host } from '../../model/host.ts';
import { ProblemLog } from '../../runtime/problem-log.ts';
import type { CgroupTree } from '../processes/cgroup-tree.ts';
import { UnreadableError } from '../processes/readable.ts';
import type { AgentLogger, AgentMessages } from '../telemetry/log-messages.ts';
import { findGuest, type GuestParts, type GuestThread, type QemuGuest } from './guest.ts';
import { Housekeeping, type HousekeepingOutcome } from './housekeeping.ts';
import type { Launcher } from './launchers.ts';
import { type MaskOutcome, MaskPinning } from './mask-pinning.ts';
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
  readonly record: Pick<PinRecord, 'forget' | 'save' | 'scope'>;
}

interface Running {
  readonly guest: QemuGuest;
  readonly masks: MaskPinning;
  readonly housekeeping: Housekeeping;
}

/**
 * Keeps the threads of one launcher's guest on their CPUs, from check to check.
 *
 * Owner: LauncherChecks, for one pod. Age: as of the last check. End: the cgroup's with its container, the guest's with
 * its process.
 */
export class LauncherPinning {
  readonly #parts: LauncherPinningParts;
  #cgroup: { readonly id: string; readonly path: string } | undefined;
  #running: Running | undefined;

  constructor(parts: LauncherPinningParts) {
    this.#parts = parts;
  }

  /** @throws UnreadableError */
  reconcile(launcher: Launcher, node: NodeCpus): LauncherView {
    const path = this.#cgroupPath(launcher);
    const cpuset = path === undefined ? undefined : this.#parts.tree.cpuset(path);
    const running = path === undefined || cpuset === undefined ? undefined : this.#guestIn(launcher.uid, path);
    const idle = idleView(launcher, node, cpuset);
    if (path === undefined || cpuset === undefined || running === undefined) {
      if (cpuset === undefined) this.#cgroup = undefined;
      return idle;
    }
    const { guest, masks, housekeeping } = running;
    const threads = guest.list();
    const view = { ...idle, pid: guest.pid, threads };
    if (node.dedicated.has(launcher.uid)) {
      return { ...view, housekeeping: housekeeping.keep({ path, cpuset, guest, threads, host: node.host }) };
    }
    if (launcher.maskRequest === undefined) {
      masks.release(threads, cpuset);
      return view;
    }
    if (node.reserved === undefined || node.host === undefined) return view;
    const { mask, fixMismatch } = launcher.maskRequest;
    const { online } = node.host;
    const withheld = node.reserved.union(node.owned);
    const vm = { mask, fixMismatch, online, container: cpuset, withheld, mayBePlugged: launcher.migrated };
    return { ...view, mask: masks.keep(vm, threads) };
  }

  /** Moves threads that a mask had moved back to the CPUs of the container. @throws UnreadableError */
  release(): void {
    if (this.#running === undefined || this.#cgroup === undefined || !this.#running.guest.isAlive()) return;
    const cpuset = this.#parts.tree.cpuset(this.#cgroup.path);
    if (cpuset !== undefined) this.#running.masks.release(this.#running.guest.list(), cpuset);
  }

  #cgroupPath({ uid, containerId }: Launcher): string | undefined {
    if (containerId === undefined) return undefined;
    if (this.#cgroup?.id !== containerId) {
      const path = this.#parts.tree.container(uid, containerId);
      this.#cgroup = path === undefined ? undefined : { id: containerId, path };
      this.#running = undefined;
    }
    return this.#cgroup?.path;
  }

  #guestIn(podUID: string, path: string): Running | undefined {
    const running = this.#running;
    // A QEMU without vCPU threads may be the one that libvirt starts to query its capabilities.
    if (running?.guest.isReady === true && running.guest.isAlive()) return running;
    const guest = findGuest(this.#parts.tree.processes(path) ?? [], this.#parts);
    if (guest === undefined) this.#running = undefined;
    else if (running?.guest.pid !== guest.pid || running.guest.start !== guest.start) {
      const { pid, start, affinity } = guest;
      const { record } = this.#parts;
      const masks = new MaskPinning({
        ...this.#parts,
        affinity,
        path,
        scopeBefore: record.scope(podUID, guest),
        saveScope: (scope) =>
          scope === undefined ? record.forget(podUID) : record.save({ podUID, pid, start, scope }),
      });
      this.#running = { guest, masks, housekeeping: new Housekeeping({ ...this.#parts, affinity }) };
    }
    return this.#running;
  }
}

function idleView(launcher: Launcher, node: NodeCpus, container = CpuSet.EMPTY): LauncherView {
  const mask = refusalOf(launcher, node);
  return { launcher, pid: undefined, container, threads: [], mask, housekeeping: undefined };
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
  readonly pinning: LauncherPinning;
  readonly launcher: Launcher;
  readonly view: LauncherView;
  /** When its container was first seen, in monotonic milliseconds. */
  readonly since: number | undefined;
}

/**
 * Owner: the passes, for each managed launcher. Age: as of the last check that could read the launcher's cgroup and
 * threads. End: when the launcher is no longer managed, and has what a mask had moved back.
 */
export class LauncherChecks {
  readonly #parts: LauncherPinningParts;
  readonly #onForgotten: (uid: string) => void;
  /** By the uid of the pod. */
  readonly #checked = new Map<string, CheckedLauncher>();
  readonly #problems: ProblemLog<AgentMessages>;

  /** @param onForgotten called with the uid of each launcher that is no longer managed */
  constructor(parts: LauncherPinningParts & { readonly log: AgentLogger }, onForgotten: (uid: string) => void) {
    this.#parts = parts;
    this.#onForgotten = onForgotten;
    this.#problems = new ProblemLog(parts.log);
  }

  /** Releases all others that were checked before. @param onlyStarting reuses the last check of those that run */
  at(launchers: readonly Launcher[], node: NodeCpus, onlyStarting: boolean): LauncherView[] {
    const unreadable: UnreadableError[] = [];
    const uids = new Set(launchers.map(({ uid }) => uid));
    for (const [uid, { pinning }] of this.#checked) {
      // A pod that still exists has lost its mask.
      if (uids.has(uid) || !isReadable(() => pinning.release(), unreadable)) continue;
      this.#checked.delete(uid);
      this.#onForgotten(uid);
    }
    const views = launchers.map((launcher) => this.#reconcile(launcher, node, onlyStarting, unreadable));
    const [first] = unreadable;
    if (first !== undefined) this.#problems.failed(first, 'reading a VM’s threads failed; keeping their last state');
    else if (!onlyStarting) this.#problems.recovered();
    return views;
  }

  /** Whether a VM with a mask is about to get its threads. No event reports that they exist. */
  hasStarting(): boolean {
    return [...this.#checked.values()].some(isStarting);
  }

  end(): void {
    this.#checked.clear();
  }

  #reconcile(launcher: Launcher, node: NodeCpus, onlyStarting: boolean, unreadable: UnreadableError[]): LauncherView {
    const last = this.#checked.get(launcher.uid);
    if (onlyStarting && last?.launcher === launcher && !isStarting(last)) return unchanged(last.view);
    const { pinning = new LauncherPinning(this.#parts) } = last ?? {};
    const since = last?.since ?? (launcher.containerId === undefined ? undefined : performance.now());
    let view = last === undefined ? idleView(launcher, node) : unchanged(last.view);
    isReadable(() => {
      view = pinning.reconcile(launcher, node);
    }, unreadable);
    this.#checked.set(launcher.uid, { pinning, launcher, view, since });
    return view;
  }
}

/** Does the work. @returns false, with its error added to the list, if a process or cgroup cannot be read */
function isReadable(work: () => void, unreadable: UnreadableError[]): boolean {
  try {
    work();
    return true;
  } catch (error) {
    if (!(error instanceof UnreadableError)) throw error;
    unreadable.push(error);
    return false;
  }
}

function isStarting({ launcher: { maskRequest }, view: { mask }, since }: CheckedLauncher): boolean {
  const isWaiting = maskRequest !== undefined && mask === undefined && since !== undefined;
  return isWaiting && performance.now() - since < MAX_STARTING_MILLISECONDS;
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
