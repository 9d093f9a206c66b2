import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { type InterruptSeconds, pressureSeconds } from '../../hardware/interrupt-counts.ts';
import type { DisturbedVm } from '../../model/agent-status.ts';
import type { QemuThreadRole } from '../../model/launcher/qemu-threads.ts';
import { unlessMissing } from '../files/bounded-file.ts';
import type { CgroupTree } from '../processes/cgroup-tree.ts';
import { commOf } from '../processes/proc.ts';
import { readIfPresent, unlessUnreadable } from '../processes/readable.ts';
import { pciAddressIn } from './knobs.ts';

/** A VM as the pinning of VMs sees it. */
export interface Guest {
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

/** How long a vCPU waited, or another thread of the VM ran, since its start. */
interface ThreadTime {
  readonly counter: 'runDelay' | 'own';
  readonly seconds: number;
}

/** What the kernel has counted for a VM at one moment. */
export interface VmReading {
  /** Monotonic seconds. */
  readonly at: number;
  /** Texts are '' while they are unknown. */
  readonly vm: Pick<DisturbedVm, 'namespace' | 'vmi' | 'podName' | 'podUID'>;
  /** Seconds of interrupts since the start of the cgroup (`exact`) or the machine; undefined where it does not count. */
  readonly interrupts: number | undefined;
  readonly quality: DisturbedVm['quality'];
  /** By thread id; empty while QEMU's threads are unknown. */
  readonly threads: ReadonlyMap<number, ThreadTime>;
  /** Since boot, by the id of the source. */
  readonly counts: ReadonlyMap<string, number>;
}

export interface ReadingDeps {
  /** Mount point of procfs. */
  readonly procRoot: string;
  readonly tree: Pick<CgroupTree, 'container' | 'processes'>;
}

const MAX_RECORD_BYTES = 4096;
const NANOSECONDS = 1e9;

/** Interrupts are those of the VM's cgroup, otherwise those that were counted for its CPUs. */
export function readVm(
  { procRoot, tree }: ReadingDeps,
  guest: Guest | undefined,
  counted: InterruptSeconds | undefined,
): Omit<VmReading, 'at' | 'vm' | 'counts'> {
  const { uid = '', containerId } = guest?.launcher ?? {};
  const cgroup = unlessUnreadable(() => containerId && tree.container(uid, containerId), undefined);
  const pids = unlessUnreadable(() => (cgroup && tree.processes(cgroup)) || [], []);
  const threads = readThreads(procRoot, guest, pids);
  const exact = pressureSeconds((cgroup && readOrNone(join(cgroup, 'irq.pressure'))) ?? '');
  const { hardware, soft } = counted ?? {};
  if (exact !== undefined) return { interrupts: exact, quality: 'exact', threads };
  if (hardware !== undefined) return { interrupts: hardware + (soft ?? 0), quality: 'sampled', threads };
  return { interrupts: soft, quality: soft === undefined ? 'counts' : 'softirqs-sampled', threads };
}

/** @param pids of the VM's cgroup */
function readThreads(procRoot: string, guest: Guest | undefined, pids: readonly number[]): VmReading['threads'] {
  const { pid, threads = [] } = guest ?? {};
  const vcpus = new Set(threads.filter(({ role }) => role.kind === 'vcpu').map(({ tid }) => tid));
  if (pid === undefined || vcpus.size === 0) return new Map();
  // Before Linux 6.4, vhost's workers are kernel threads in the cgroup of the VM.
  const isVhost = (other: number) => other !== pid && commOf(other)?.startsWith('vhost-') === true;
  const workers = unlessUnreadable(() => pids.filter(isVhost), []);
  const times = new Map<number, ThreadTime>();
  for (const tid of [...threads.map(({ tid }) => tid), ...workers]) {
    const directory = workers.includes(tid) ? `${tid}` : `${pid}/task/${tid}`;
    // Nanoseconds on a CPU, and waiting for one. Source: Documentation/scheduler/sched-stats.rst of the kernel.
    const [run, delay] = (readOrNone(join(procRoot, directory, 'schedstat')) ?? '').split(' ').map(Number);
    if (run === undefined || delay === undefined) continue;
    const counter = vcpus.has(tid) ? 'runDelay' : 'own';
    times.set(tid, { counter, seconds: (counter === 'own' ? run : delay) / NANOSECONDS });
  }
  return times;
}

function readOrNone(path: string): string | undefined {
  return unlessUnreadable(() => readIfPresent(path, MAX_RECORD_BYTES), undefined);
}

/** The names of the handlers: what follows the chip and the trigger of a device's interrupt. */
export function handlerOf(text: string): string {
  return text.replace(/^.*?\S*(?:edge|level|fasteoi)\s+/i, '');
}

/** Network interfaces and disks of the PCI function in an interrupt's chip; empty for others. */
export function devicesOf(sysfsRoot: string, text: string): string[] {
  const address = pciAddressIn(text);
  if (address === undefined) return [];
  const directory = join(sysfsRoot, 'bus/pci/devices', address);
  const list = (path: string) => unlessMissing(() => readdirSync(path)) ?? [];
  const virtio = list(directory).filter((name) => /^virtio\d+$/.test(name));
  const parents = [directory, ...virtio.map((name) => join(directory, name))];
  return parents.flatMap((parent) => ['net', 'nvme', 'block'].flatMap((kind) => list(join(parent, kind))));
}
