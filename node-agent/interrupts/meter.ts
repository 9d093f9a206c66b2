import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import {
  type InterruptSeconds,
  interruptSeconds,
  pressureSeconds,
  type SourceCounts,
  sourceCounts,
} from '../../hardware/interrupt-counts.ts';
import type { DisturbedVm } from '../../model/agent-status.ts';
import { errorText } from '../../model/errors.ts';
import type { QemuThreadRole } from '../../model/launcher/qemu-threads.ts';
import { byText } from '../../model/lists.ts';
import type { CpuOwner } from '../assignments/view.ts';
import { readBounded, unlessMissing } from '../files/bounded-file.ts';
import type { CgroupTree } from '../processes/cgroup-tree.ts';
import { commOf } from '../processes/proc.ts';
import { readIfPresent, unlessUnreadable } from '../processes/readable.ts';
import { pciAddressIn } from './knobs.ts';
import { VmAccount, type VmReading } from './vm-account.ts';

/** A VM as the pinning of VMs sees it. */
interface Guest {
  readonly launcher: {
    readonly uid: string;
    readonly namespace: string;
    readonly podName: string;
    readonly vmi: { readonly name: string };
    readonly containerId: string | undefined;
  };
  /** Undefined while QEMU does not run. */
  readonly pid: number | undefined;
  readonly threads: readonly { readonly tid: number; readonly role: QemuThreadRole }[];
}

export interface MeterDeps {
  /** Mount point of procfs. */
  readonly procRoot: string;
  readonly sysfsRoot: string;
  readonly tree: Pick<CgroupTree, 'container' | 'processes'>;
  readonly guests: () => readonly Guest[];
  /** Monotonic seconds. */
  readonly nowSeconds: () => number;
}

/** Maximum bytes: 4 MB with 256 CPUs and 1,500 interrupts. */
const MAX_INTERRUPTS_BYTES = 32 * 1024 * 1024;
const MAX_RECORD_BYTES = 4096;
const TOP_SOURCES = 5;
const NANOSECONDS = 1e9;

/** A VM with CPUs of its own. */
interface MeasuredVm {
  readonly owner: CpuOwner;
  readonly guest: Guest | undefined;
  readonly account: VmAccount;
}

/**
 * Reads what ran on the CPUs of VMs besides them. Without VMs it reads nothing.
 *
 * Owner: the duty. Age: as of the last reading. End: an account's with the owner of the CPUs.
 */
export class InterruptMeter {
  readonly #deps: MeterDeps;
  #vms: ReadonlyMap<string, MeasuredVm> = new Map();
  #sources: ReadonlyMap<string, string> = new Map();
  #problems: readonly string[] = [];

  constructor(deps: MeterDeps) {
    this.#deps = deps;
  }

  get vms(): readonly MeasuredVm[] {
    return [...this.#vms.values()];
  }

  get problems(): readonly string[] {
    return this.#problems;
  }

  read(owners: readonly CpuOwner[]): void {
    const { procRoot, guests, nowSeconds } = this.#deps;
    if (owners.length === 0) {
      this.#vms = new Map();
      this.#problems = [];
      return;
    }
    const problems: string[] = [];
    const read = (name: string): string => {
      try {
        const text = readBounded(join(procRoot, name), MAX_INTERRUPTS_BYTES);
        if (text === '') problems.push(`${join(procRoot, name)} is empty: the container runtime masks it`);
        return text;
      } catch (error) {
        problems.push(errorText(error));
        return '';
      }
    };
    const groups = owners.map(({ cpus }) => cpus);
    const sources = [...sourceCounts(read('interrupts'), groups), ...sourceCounts(read('softirqs'), groups)];
    const seconds = interruptSeconds(read('stat'), groups);
    const at = nowSeconds();
    const guestOf = new Map(guests().map((guest) => [guest.launcher.uid, guest]));
    const vms = owners.map((owner, i): [string, MeasuredVm] => {
      const guest = guestOf.get(owner.podUID);
      const reading = {
        at,
        ...this.#interrupts(guest, seconds[i]),
        ...this.#threads(guest),
        counts: countsOf(sources, i),
      };
      return [owner.podUID, { owner, guest, account: this.#account(owner, reading) }];
    });
    this.#vms = new Map(vms);
    this.#sources = new Map(sources.map(({ id, text }) => [id, text]));
    this.#problems = problems;
  }

  /** For display. It reads the devices of the most frequent interrupts from sysfs. */
  status(): DisturbedVm[] {
    const vms = this.vms.map(({ owner, guest, account }) => ({
      namespace: guest?.launcher.namespace ?? owner.name?.namespace ?? '',
      vmi: guest?.launcher.vmi.name ?? '',
      podName: guest?.launcher.podName ?? owner.name?.podName ?? '',
      podUID: owner.podUID,
      ...account.status(),
      sources: account.topSources(TOP_SOURCES).map(({ id, count }) => {
        const text = this.#sources.get(id) ?? '';
        return { id, name: handlerOf(text), devices: devicesOf(this.#deps.sysfsRoot, text), count };
      }),
    }));
    return vms.sort(byText(({ namespace, vmi, podName }) => `${namespace} ${vmi} ${podName}`));
  }

  #account({ podUID, cpus }: CpuOwner, reading: VmReading): VmAccount {
    const before = this.#vms.get(podUID)?.account;
    if (before?.isOf(cpus, reading.quality) !== true) return new VmAccount(cpus, reading);
    before.add(reading);
    return before;
  }

  #interrupts(
    guest: Guest | undefined,
    counted: InterruptSeconds | undefined,
  ): Pick<VmReading, 'interrupts' | 'quality'> {
    const pressure = unlessUnreadable(() => {
      const cgroup = this.#cgroupOf(guest);
      return cgroup && readIfPresent(join(cgroup, 'irq.pressure'), MAX_RECORD_BYTES);
    }, undefined);
    const exact = pressureSeconds(pressure ?? '');
    const { hardware, soft } = counted ?? {};
    if (exact !== undefined) return { interrupts: exact, quality: 'exact' };
    if (hardware !== undefined) return { interrupts: hardware + (soft ?? 0), quality: 'sampled' };
    return { interrupts: soft, quality: soft === undefined ? 'counts' : 'softirqs-sampled' };
  }

  #cgroupOf(guest: Guest | undefined): string | undefined {
    const { containerId, uid } = guest?.launcher ?? {};
    return containerId === undefined || uid === undefined ? undefined : this.#deps.tree.container(uid, containerId);
  }

  #threads(guest: Guest | undefined): Pick<VmReading, 'runDelay' | 'nonVcpuTime'> {
    const { pid, threads = [] } = guest ?? {};
    if (pid === undefined) return { runDelay: undefined, nonVcpuTime: undefined };
    const runDelay = new Map<number, number>();
    const nonVcpuTime = new Map<number, number>();
    for (const { tid, role } of threads) {
      const times = this.#schedstat(`${pid}/task/${tid}`);
      if (times === undefined) continue;
      if (role.kind === 'vcpu') runDelay.set(tid, times.delay);
      else nonVcpuTime.set(tid, times.run);
    }
    // Before Linux 6.4, vhost's workers are kernel threads in the cgroup of the VM.
    for (const worker of this.#vhostWorkers(guest, pid)) {
      const times = this.#schedstat(`${worker}`);
      if (times !== undefined) nonVcpuTime.set(worker, times.run);
    }
    const isKnown = runDelay.size > 0;
    return { runDelay: isKnown ? runDelay : undefined, nonVcpuTime: isKnown ? nonVcpuTime : undefined };
  }

  /** Seconds on a CPU, and waiting for one. Source: Documentation/scheduler/sched-stats.rst of the kernel. */
  #schedstat(thread: string) {
    const path = join(this.#deps.procRoot, thread, 'schedstat');
    const text = unlessUnreadable(() => readIfPresent(path, MAX_RECORD_BYTES), undefined);
    const [run, delay] = (text ?? '').split(' ').map((nanoseconds) => Number(nanoseconds) / NANOSECONDS);
    return run === undefined || delay === undefined ? undefined : { run, delay };
  }

  #vhostWorkers(guest: Guest | undefined, qemu: number): number[] {
    return unlessUnreadable(() => {
      const cgroup = this.#cgroupOf(guest);
      const pids = (cgroup && this.#deps.tree.processes(cgroup)) || [];
      return pids.filter((pid) => pid !== qemu && commOf(pid)?.startsWith('vhost-') === true);
    }, []);
  }
}

function countsOf(sources: readonly SourceCounts[], group: number): ReadonlyMap<string, number> {
  const counted = sources.map(({ id, counts }) => [id, counts[group] ?? 0] as const);
  return new Map(counted.filter(([, count]) => count > 0));
}

/** The names of the handlers: what follows the chip and the trigger of a device's interrupt. */
function handlerOf(text: string): string {
  return text.replace(/^.*?\S*(?:edge|level|fasteoi)\s+/i, '');
}

/** Network interfaces and disks of the PCI function in an interrupt's chip; empty for others. */
function devicesOf(sysfsRoot: string, text: string): string[] {
  const address = pciAddressIn(text);
  if (address === undefined) return [];
  const directory = join(sysfsRoot, 'bus/pci/devices', address);
  const list = (path: string) => unlessMissing(() => readdirSync(path)) ?? [];
  const virtio = list(directory).filter((name) => /^virtio\d+$/.test(name));
  const parents = [directory, ...virtio.map((name) => join(directory, name))];
  return parents.flatMap((parent) => ['net', 'nvme', 'block'].flatMap((kind) => list(join(parent, kind))));
}
