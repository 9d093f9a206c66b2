import { CpuSet } from '../../model/cpu-set.ts';
import type { Host } from '../../model/host.ts';
import type { CgroupTree } from '../processes/cgroup-tree.ts';
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
    const withheld = node.reserved.union(node.owned);
    const { mask, fixMismatch } = launcher.maskRequest;
    const { migrated: mayBePlugged } = launcher;
    const { online } = node.host;
    return {
      ...view,
      mask: masks.keep({ mask, fixMismatch, online, container: cpuset, withheld, mayBePlugged }, threads),
    };
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
      const housekeeping = new Housekeeping({ ...this.#parts, affinity: guest.affinity });
      this.#running = { guest, masks: this.#masksOf(podUID, path, guest), housekeeping };
    }
    return this.#running;
  }

  #masksOf(podUID: string, path: string, { pid, start, affinity }: QemuGuest): MaskPinning {
    const { tree, record, nowSeconds } = this.#parts;
    return new MaskPinning({
      affinity,
      tree,
      path,
      nowSeconds,
      scopeBefore: record.scope(podUID, { pid, start }),
      saveScope: (scope) => (scope === undefined ? record.forget(podUID) : record.save({ podUID, pid, start, scope })),
    });
  }
}

export function idleView(launcher: Launcher, node: NodeCpus, container = CpuSet.EMPTY): LauncherView {
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
