import { join } from 'node:path';
import { CpuSet } from '../../model/cpu-set.ts';
import { resultOrNone } from '../../model/json.ts';
import type { ThreadAffinity } from '../../native/affinity.ts';
import { allowedOf } from '../processes/proc.ts';
import type { KernelFiles } from './kernel-files.ts';

export type KnobKind = 'irq' | 'rps' | 'workqueue' | 'kthread' | 'default';

/** A set of CPUs in the kernel that decides where some of its work runs. */
export interface Knob {
  readonly kind: KnobKind;
  /** Identifies it in this boot, also for a later agent: numbers of interrupts are used again. */
  readonly key: string;
  /** Differs for an interrupt that was freed and requested again, with the same key. */
  readonly instance?: number;
  readonly name: string;
  /** The NUMA node of its device. */
  readonly cell?: number | undefined;
  /** Whether it serves a device that a VM has: its own CPUs are then no better than others. */
  readonly isOfVm?: boolean;
  /** Whether only the kernel sets it. */
  readonly isManaged?: boolean;
  /** The key of a knob whose value a new one gets. */
  readonly inheritsFrom?: string | undefined;
  /** The value now; undefined if it is gone. */
  read(): CpuSet | undefined;
  /** @throws a system error or SyscallError */
  write(cpus: CpuSet): void;
  /** The CPUs where the work really runs, if the kernel tells. */
  effective?(): CpuSet | undefined;
}

export type KernelIo = Pick<KernelFiles, keyof KernelFiles>;

export interface KnobDeps {
  readonly files: KernelIo;
  readonly procRoot: string;
  readonly sysfsRoot: string;
  readonly affinity: ThreadAffinity;
}

/** The mask that new interrupts get, unless their driver sets another. */
const DEFAULT_AFFINITY = 'default_smp_affinity';
const WORKQUEUE = 'devices/virtual/workqueue';
const PCI_ADDRESS = /\b[\da-f]{4,8}:[\da-f]{2}:[\da-f]{2}\.[0-7]\b/;
const OWNER_WRITES = 0o200;
const KTHREADD = 2;
const KTHREADD_KEY = 'kthreadd';
const MAX_CHILDREN_BYTES = 1024 * 1024;
/** PF_NO_SETAFFINITY: the kernel binds the thread itself. Source: include/linux/sched.h. */
const NO_SETAFFINITY = 0x04000000;
/** Kernel threads of one VM (`vhost-<pid>`, `kvm-pit/<pid>`), and those that follow the mask of an interrupt. */
const NOT_OURS = /^(?:vhost-|kvm-|irq\/)/;

/** The address of the PCI function in the name of an interrupt's chip. */
export function pciAddressIn(text: string): string | undefined {
  return PCI_ADDRESS.exec(text)?.[0];
}

/** `ff,ffffffff`: groups of 32 bits, as every kernel parses. */
export function maskText(cpus: CpuSet): string {
  const [first = '0', ...rest] = [...cpus.toWords(1)].toReversed().map((word) => word.toString(16));
  return [first, ...rest.map((word) => word.padStart(8, '0'))].join(',');
}

function parsed(text: string | undefined, parse: (text: string) => CpuSet): CpuSet | undefined {
  return text === undefined ? undefined : resultOrNone(() => parse(text));
}

/** A NUMA node's number; undefined for -1, which says that there is none, and if the file is absent. */
function cellIn(text: string | undefined): number | undefined {
  return /^\d+$/.test(text ?? '') ? Number(text) : undefined;
}

/** The CPUs of isolated cpuset partitions. */
export function partitionCpus({ files, sysfsRoot }: KnobDeps): CpuSet {
  return parsed(files.readOnce(join(sysfsRoot, WORKQUEUE, 'cpumask_isolated')), CpuSet.fromMask) ?? CpuSet.EMPTY;
}

/** Queues have their file's number, which an interface keeps when it is renamed, or leaves for a pod and returns. */
export const isRpsKey = (key: string): boolean => key.startsWith('rps ');

/**
 * Finds what can be set. Owner: the kernel. Age: interrupts as of each call, the rest of the last search; what an
 * interrupt or a thread serves is read once. End: with its directory.
 */
export class KnobFinder {
  readonly #deps: KnobDeps;
  #irqs: ReadonlyMap<string, Knob> = new Map();
  /** By thread id; undefined for those that cannot or must not move. */
  #threads: ReadonlyMap<number, Knob | undefined> = new Map();
  #searched: readonly Knob[] = [];

  constructor(deps: KnobDeps) {
    this.#deps = deps;
  }

  /** @param isSearch whether to look for queues and threads, too */
  find(isSearch: boolean): Knob[] {
    if (isSearch) this.#searched = [this.#workqueues(), ...this.#queues(), ...this.#kthreads()];
    // Those whose value others get first.
    return [this.#newInterrupts(), ...this.#interrupts(), ...this.#searched];
  }

  #newInterrupts(): Knob {
    const path = join(this.#deps.procRoot, 'irq', DEFAULT_AFFINITY);
    return { kind: 'default', key: DEFAULT_AFFINITY, name: 'new interrupts', ...this.#mask(path) };
  }

  #mask(path: string): Pick<Knob, 'read' | 'write'> {
    const { files } = this.#deps;
    return {
      read: () => parsed(files.read(path)?.text, CpuSet.fromMask),
      write: (cpus) => files.write(path, maskText(cpus)),
    };
  }

  #interrupts(): Knob[] {
    const { files, procRoot } = this.#deps;
    const root = join(procRoot, 'irq');
    const maskOf = (number: string) => join(root, number, 'smp_affinity_list');
    const numbers = files.list(root).filter((name) => /^\d+$/.test(name));
    const knobs = new Map<string, Knob>();
    for (const number of numbers) {
      const path = maskOf(number);
      const instance = files.read(path)?.instance;
      if (instance === undefined) continue;
      const before = this.#irqs.get(number);
      const knob = before?.instance === instance ? before : this.#interrupt(number, path, instance);
      if (knob !== undefined) knobs.set(number, knob);
    }
    // Those that are gone, or serve nothing.
    for (const number of [...numbers, ...this.#irqs.keys()]) if (!knobs.has(number)) files.close(maskOf(number));
    this.#irqs = knobs;
    return [...knobs.values()];
  }

  /** Undefined for an interrupt without a handler. */
  #interrupt(number: string, path: string, instance: number): Knob | undefined {
    const { files, procRoot, sysfsRoot } = this.#deps;
    const about = (name: string) => files.readOnce(join(sysfsRoot, 'kernel/irq', number, name)) ?? '';
    const actions = about('actions');
    if (actions === '') return undefined;
    const chip = about('chip_name');
    const directory = join(procRoot, 'irq', number);
    const device = join(sysfsRoot, 'bus/pci/devices', pciAddressIn(chip) ?? 'none');
    return {
      kind: 'irq',
      // An MSI's number names its device and vector. Its action has the name of the NIC when that was opened.
      key: `irq ${chip} ${about('hwirq')} ${files.linkName(join(device, 'driver')) ?? actions}`,
      instance,
      name: `${number} ${actions}`,
      cell: cellIn(files.readOnce(join(directory, 'node'))) ?? cellIn(files.readOnce(join(device, 'numa_node'))),
      isOfVm: actions.startsWith('vfio-msi'),
      // The kernel marks masks that it manages itself.
      isManaged: ((files.stat(path)?.mode ?? 0) & OWNER_WRITES) === 0,
      inheritsFrom: DEFAULT_AFFINITY,
      read: () => parsed(files.read(path)?.text, CpuSet.parse),
      write: (cpus) => files.write(path, String(cpus)),
      effective: () => parsed(files.readOnce(join(directory, 'effective_affinity_list')), CpuSet.parse),
    };
  }

  /** The CPUs of unbound workqueues, without those that the kernel takes away for isolated cpuset partitions. */
  #workqueues(): Knob {
    const root = join(this.#deps.sysfsRoot, WORKQUEUE);
    const mask = this.#mask(join(root, 'cpumask'));
    // What was asked for, which a partition does not change; writing replaces it.
    const requested = this.#mask(join(root, 'cpumask_requested'));
    return {
      kind: 'workqueue',
      key: 'workqueue',
      name: 'unbound workqueues',
      read: () => requested.read() ?? mask.read(),
      // A write replaces the isolation of partitions.
      write: (cpus) => mask.write(cpus.minus(partitionCpus(this.#deps))),
    };
  }

  /** Receive queues of this network namespace whose packets are spread over CPUs. A queue without a mask stays without. */
  #queues(): Knob[] {
    const { files, sysfsRoot } = this.#deps;
    const root = join(sysfsRoot, 'class/net');
    return files.list(root).flatMap((nic) => {
      const cell = cellIn(files.readOnce(join(root, nic, 'device/numa_node')));
      const queues = files.list(join(root, nic, 'queues')).filter((name) => name.startsWith('rx-'));
      return queues.flatMap((queue): Knob[] => {
        const path = join(root, nic, 'queues', queue, 'rps_cpus');
        const inode = files.stat(path)?.ino;
        const read = () =>
          files.stat(path)?.ino === inode ? parsed(files.readOnce(path), CpuSet.fromMask) : undefined;
        if (inode === undefined || read()?.isEmpty !== false) return [];
        const write = (cpus: CpuSet) => files.write(path, maskText(cpus), inode);
        return [{ kind: 'rps', key: `rps ${inode}`, name: `${nic} ${queue}`, cell, read, write }];
      });
    });
  }

  /** The kernel threads that may run elsewhere, with `napi/*` of threaded NAPI. */
  #kthreads(): Knob[] {
    const { files, procRoot } = this.#deps;
    const path = join(procRoot, `${KTHREADD}/task/${KTHREADD}/children`);
    const children = files.readOnce(path, MAX_CHILDREN_BYTES);
    if (children === undefined) return [];
    const tids = [KTHREADD, ...children.split(' ').filter(Boolean).map(Number)];
    const before = this.#threads;
    this.#threads = new Map(tids.map((tid) => [tid, before.has(tid) ? before.get(tid) : this.#kthread(tid)]));
    return [...this.#threads.values()].filter((knob) => knob !== undefined);
  }

  #kthread(tid: number): Knob | undefined {
    const { affinity, files, procRoot } = this.#deps;
    const stat = files.readOnce(join(procRoot, `${tid}/stat`)) ?? '';
    const end = stat.lastIndexOf(')');
    const name = stat.slice(stat.indexOf('(') + 1, end);
    const fields = stat.slice(end + 2).split(' ');
    const [flags = NO_SETAFFINITY, start] = [fields[6], fields[19]];
    if ((Number(flags) & NO_SETAFFINITY) !== 0 || NOT_OURS.test(name)) return undefined;
    return {
      kind: 'kthread',
      name,
      key: tid === KTHREADD ? KTHREADD_KEY : `kthread ${tid} ${start}`,
      inheritsFrom: tid === KTHREADD ? undefined : KTHREADD_KEY,
      read: () => allowedOf(affinity, tid),
      write: (cpus) => affinity.set(tid, cpus.toWords(1)),
    };
  }
}
