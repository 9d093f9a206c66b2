import { join } from 'node:path';
import { CpuSet } from '../../model/cpu-set.ts';
import type { SyscallError, ThreadAffinity } from '../../native/affinity.ts';
import { allowedOf } from '../processes/proc.ts';
import type { KernelFiles } from './kernel-files.ts';

export type KnobKind = 'irq' | 'rps' | 'workqueue' | 'kthread' | 'default';

/** A set of CPUs in the kernel that decides where some of its work runs. */
export interface Knob {
  readonly kind: KnobKind;
  /** Identifies it in this boot, also for a later agent: numbers of interrupts are used again. */
  readonly key: string;
  /** Differs for another knob with the same key: an interrupt that was freed and requested again. */
  readonly instance: number;
  readonly name: string;
  /** The NUMA node of its device. */
  readonly cell: number | undefined;
  /** Whether it serves a device that a VM has: its own CPUs are then no better than others. */
  readonly isOfVm: boolean;
  /** The key of a knob whose value a new one gets. */
  readonly inheritsFrom: string | undefined;
  readonly current: CpuSet;
  /** Whether the kernel lets anyone change it. */
  isSettable(): boolean;
  /** @throws a system error or SyscallError */
  write(cpus: CpuSet): void;
  /** The value now; undefined if it is gone. */
  read(): CpuSet | undefined;
  /** The CPUs where the work really runs, if the kernel tells. */
  effective(): CpuSet | undefined;
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
const KTHREADD = 2;
const WORKQUEUE = 'devices/virtual/workqueue';
const PCI_ADDRESS = /\b[\da-f]{4,8}:[\da-f]{2}:[\da-f]{2}\.[0-7]\b/;

/** The address of the PCI function in the name of an interrupt's chip. */
export function pciAddressIn(text: string): string | undefined {
  return PCI_ADDRESS.exec(text)?.[0];
}

/** `ff,ffffffff`: groups of 32 bits, as every kernel parses. */
export function maskText(cpus: CpuSet): string {
  const [first = '0', ...rest] = [...cpus.toWords(1)].toReversed().map((word) => word.toString(16));
  return [first, ...rest.map((word) => word.padStart(8, '0'))].join(',');
}

interface Format {
  readonly parse: (text: string) => CpuSet;
  readonly format: (cpus: CpuSet) => string;
}

const MASK: Format = { parse: CpuSet.fromMask, format: maskText };
const LIST: Format = { parse: CpuSet.parse, format: String };

function parsed(text: string | undefined, { parse }: Format): CpuSet | undefined {
  try {
    return text === undefined ? undefined : parse(text);
  } catch {
    return undefined;
  }
}

type About = Pick<Knob, 'kind' | 'key' | 'name'> &
  Partial<Pick<Knob, 'cell' | 'isOfVm' | 'inheritsFrom' | 'effective'>>;

/** Empty if there is no such file. */
function fileKnob({ files }: KnobDeps, path: string, format: Format, about: About): Knob[] {
  const reading = files.read(path);
  const current = parsed(reading?.text, format);
  if (reading === undefined || current === undefined) return [];
  const knob: Knob = {
    ...{ cell: undefined, isOfVm: false, inheritsFrom: undefined, effective: () => undefined },
    ...about,
    instance: reading.instance,
    current,
    isSettable: () => files.isWritable(path),
    write: (cpus) => files.write(path, format.format(cpus)),
    read: () => parsed(files.read(path)?.text, format),
  };
  return [knob];
}

/** A NUMA node's number; undefined for -1, which says that there is none, and if the file is absent. */
function cellIn(text: string | undefined): number | undefined {
  return /^\d+$/.test(text ?? '') ? Number(text) : undefined;
}

type IrqFacts = About & { readonly instance: number };

/**
 * The interrupts of devices. Owner: the kernel. Age: masks are read at each scan; what an interrupt serves, once for
 * each instance of its file. End: with its directory.
 */
export class IrqKnobs {
  readonly #deps: KnobDeps;
  readonly #facts = new Map<string, IrqFacts>();

  constructor(deps: KnobDeps) {
    this.#deps = deps;
  }

  scan(): Knob[] {
    const { files, procRoot } = this.#deps;
    const root = join(procRoot, 'irq');
    const numbers = new Set(files.list(root).filter((name) => /^\d+$/.test(name)));
    for (const number of this.#facts.keys()) {
      if (numbers.has(number)) continue;
      this.#facts.delete(number);
      files.close(join(root, number, 'smp_affinity_list'));
    }
    return [...numbers].flatMap((number) => this.#knob(join(root, number), number));
  }

  #knob(directory: string, number: string): Knob[] {
    const path = join(directory, 'smp_affinity_list');
    const instance = this.#deps.files.read(path)?.instance;
    if (instance === undefined) return [];
    let facts = this.#facts.get(number);
    if (facts?.instance !== instance) {
      facts = this.#read(directory, number, instance);
      if (facts === undefined) return [];
      this.#facts.set(number, facts);
    }
    return fileKnob(this.#deps, path, LIST, facts);
  }

  /** Undefined for an interrupt without a handler. */
  #read(directory: string, number: string, instance: number): IrqFacts | undefined {
    const { files, sysfsRoot } = this.#deps;
    const about = (name: string) => files.readOnce(join(sysfsRoot, 'kernel/irq', number, name)) ?? '';
    const actions = about('actions');
    if (actions === '') return undefined;
    const chip = about('chip_name');
    const device = join(sysfsRoot, 'bus/pci/devices', pciAddressIn(chip) ?? 'none');
    return {
      kind: 'irq',
      // An MSI's number names its device and vector. Its action has the name of the NIC when that was opened.
      key: `irq ${chip} ${about('hwirq')} ${files.linkName(join(device, 'driver')) ?? actions}`,
      name: `${number} ${actions}`,
      cell: cellIn(files.readOnce(join(directory, 'node'))) ?? cellIn(files.readOnce(join(device, 'numa_node'))),
      isOfVm: actions.startsWith('vfio-msi'),
      inheritsFrom: DEFAULT_AFFINITY,
      instance,
      effective: () => parsed(files.readOnce(join(directory, 'effective_affinity_list')), LIST),
    };
  }
}

export const isRpsKey = (key: string): boolean => key.startsWith('rps ');

/**
 * Receive queues of this network namespace whose packets are spread over CPUs. A queue without a mask stays without. Its
 * file has the same number while its interface lives, also if that is renamed, or leaves for a pod and returns; the queue of
 * an interface that a driver makes again has another one.
 *
 * Owner: the kernel. Age: read at each scan. End: of an open file, the scan that does not find it.
 */
export class RpsKnobs {
  readonly #deps: KnobDeps;
  #open: ReadonlySet<string> = new Set();

  constructor(deps: KnobDeps) {
    this.#deps = deps;
  }

  scan(): Knob[] {
    const { files, sysfsRoot } = this.#deps;
    const root = join(sysfsRoot, 'class/net');
    const open = new Set<string>();
    const knobs = files.list(root).flatMap((nic) => {
      const cell = cellIn(files.readOnce(join(root, nic, 'device/numa_node')));
      const queues = files.list(join(root, nic, 'queues')).filter((name) => name.startsWith('rx-'));
      return queues.flatMap((queue) => {
        const path = join(root, nic, 'queues', queue, 'rps_cpus');
        const knob = this.#knob(path, `${nic} ${queue}`, cell);
        if (knob.length > 0) open.add(path);
        return knob;
      });
    });
    for (const path of this.#open) if (!open.has(path)) files.close(path);
    this.#open = open;
    return knobs;
  }

  #knob(path: string, name: string, cell: number | undefined): Knob[] {
    const { files } = this.#deps;
    const instance = files.inode(path);
    const [knob] = fileKnob(this.#deps, path, MASK, { kind: 'rps', key: '', name, cell });
    if (knob === undefined || knob.current.isEmpty || instance === undefined) {
      files.close(path);
      return [];
    }
    const write = (cpus: CpuSet) => files.write(path, maskText(cpus), instance);
    const read = () => (files.inode(path) === instance ? knob.read() : undefined);
    return [{ ...knob, key: `rps ${instance}`, instance, read, write }];
  }
}

/** The CPUs of isolated cpuset partitions. */
export function partitionCpus({ files, sysfsRoot }: KnobDeps): CpuSet {
  return parsed(files.read(join(sysfsRoot, WORKQUEUE, 'cpumask_isolated'))?.text, MASK) ?? CpuSet.EMPTY;
}

/** The CPUs of unbound workqueues, without those that the kernel takes away for isolated cpuset partitions. */
export function workqueueKnobs(deps: KnobDeps): Knob[] {
  const root = join(deps.sysfsRoot, WORKQUEUE);
  const about: About = { kind: 'workqueue', key: 'workqueue', name: 'unbound workqueues' };
  return fileKnob(deps, join(root, 'cpumask'), MASK, about).map((knob) => {
    // What was asked for, which a partition does not change; writing replaces it.
    const requested = () => parsed(deps.files.read(join(root, 'cpumask_requested'))?.text, MASK) ?? knob.read();
    // A write replaces the isolation of partitions.
    const write = (cpus: CpuSet) => knob.write(cpus.minus(partitionCpus(deps)));
    return { ...knob, current: requested() ?? knob.current, read: requested, write };
  });
}

export function defaultAffinityKnobs(deps: KnobDeps): Knob[] {
  const about: About = { kind: 'default', key: DEFAULT_AFFINITY, name: 'new interrupts' };
  return fileKnob(deps, join(deps.procRoot, 'irq', DEFAULT_AFFINITY), MASK, about);
}

/** PF_NO_SETAFFINITY: the kernel binds the thread itself. Source: include/linux/sched.h. */
const NO_SETAFFINITY = 0x04000000;
/** Kernel threads of one VM (`vhost-<pid>`, `kvm-pit/<pid>`), and those that follow the mask of an interrupt. */
const NOT_OURS = /^(?:vhost-|kvm-|irq\/)/;

/**
 * The kernel threads that may run elsewhere, with `napi/*` of threaded NAPI. Owner: the kernel. Age: affinities are
 * read at each scan, the rest once for each thread. End: with the thread.
 */
export class KthreadKnobs {
  readonly #deps: KnobDeps;
  /** By thread id; undefined for those that cannot or must not move. */
  #facts: ReadonlyMap<number, { readonly name: string; readonly start: number } | undefined> = new Map();

  constructor(deps: KnobDeps) {
    this.#deps = deps;
  }

  scan(): Knob[] {
    const { files, procRoot } = this.#deps;
    const children = files.readOnce(join(procRoot, `${KTHREADD}/task/${KTHREADD}/children`));
    if (children === undefined) return [];
    // The parent first: others have its CPUs.
    const tids = [KTHREADD, ...children.split(' ').filter(Boolean).map(Number)];
    const before = this.#facts;
    this.#facts = new Map(tids.map((tid) => [tid, before.has(tid) ? before.get(tid) : this.#read(tid)]));
    return tids.flatMap((tid) => this.#knob(tid) ?? []);
  }

  #knob(tid: number): Knob | undefined {
    const { affinity } = this.#deps;
    const facts = this.#facts.get(tid);
    const current = facts && allowedOf(affinity, tid);
    if (facts === undefined || current === undefined) return undefined;
    const { name, start } = facts;
    const parent = `kthread ${KTHREADD} ${this.#facts.get(KTHREADD)?.start}`;
    return {
      ...{ kind: 'kthread', key: `kthread ${tid} ${start}`, instance: start, name, current },
      ...{ cell: undefined, isOfVm: false, inheritsFrom: tid === KTHREADD ? undefined : parent },
      isSettable: () => true,
      write: (cpus) => affinity.set(tid, cpus.toWords(1)),
      read: () => allowedOf(affinity, tid),
      effective: () => undefined,
    };
  }

  #read(tid: number) {
    const stat = this.#deps.files.readOnce(join(this.#deps.procRoot, `${tid}/stat`)) ?? '';
    const end = stat.lastIndexOf(')');
    const name = stat.slice(stat.indexOf('(') + 1, end);
    const fields = stat
      .slice(end + 2)
      .split(' ')
      .map(Number);
    const [flags = NO_SETAFFINITY, start = 0] = [fields[6], fields[19]];
    return (flags & NO_SETAFFINITY) !== 0 || NOT_OURS.test(name) ? undefined : { name, start };
  }
}

export function errorCode(error: unknown): string {
  return (error as NodeJS.ErrnoException | SyscallError).code ?? 'unknown';
}
