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

/** `ff,ffffffff`: groups of 32 bits, as every kernel parses. */
export function maskText(cpus: CpuSet): string {
  const [first = '0', ...rest] = [...cpus.toWords(1)].toReversed().map((word) => word.toString(16));
  return [first, ...rest.map((word) => word.padStart(8, '0'))].join(',');
}

function parsed(text: string | undefined, parse: (text: string) => CpuSet): CpuSet | undefined {
  try {
    return text === undefined ? undefined : parse(text);
  } catch {
    return undefined;
  }
}

const cpuList = (text: string | undefined) => parsed(text, (list) => CpuSet.parse(list));
const cpuMask = (text: string | undefined) => parsed(text, (mask) => CpuSet.fromMask(mask));

/** The key of the mask that new interrupts get, unless their driver sets another. */
const DEFAULT_KEY = 'default_smp_affinity';
const KTHREADD = 2;
const WORKQUEUE = 'devices/virtual/workqueue';

interface MaskFile {
  readonly path: string;
  readonly parse: (text: string | undefined) => CpuSet | undefined;
  readonly format: (cpus: CpuSet) => string;
}

function fileKnob(
  { files }: KnobDeps,
  { path, parse, format }: MaskFile,
  about: Pick<Knob, 'kind' | 'key' | 'name'> & Partial<Pick<Knob, 'cell' | 'isOfVm' | 'inheritsFrom' | 'effective'>>,
): Knob | undefined {
  const reading = files.read(path);
  const current = parse(reading?.text);
  if (reading === undefined || current === undefined) return undefined;
  return {
    ...{ cell: undefined, isOfVm: false, inheritsFrom: undefined, effective: () => undefined },
    ...about,
    instance: reading.instance,
    current,
    isSettable: () => files.isWritable(path),
    write: (cpus) => files.write(path, format(cpus)),
    read: () => parse(files.read(path)?.text),
  };
}

interface IrqFacts extends Pick<Knob, 'key' | 'name' | 'cell' | 'isOfVm'> {
  readonly instance: number;
}

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
    const numbers = files.list(root).filter((name) => /^\d+$/.test(name));
    const present = new Set(numbers);
    for (const number of this.#facts.keys()) if (!present.has(number)) this.#forget(number);
    return numbers.flatMap((number) => this.#knob(join(root, number), number) ?? []);
  }

  #knob(directory: string, number: string): Knob | undefined {
    const path = join(directory, 'smp_affinity_list');
    const instance = this.#deps.files.read(path)?.instance;
    if (instance === undefined) return undefined;
    let facts = this.#facts.get(number);
    if (facts?.instance !== instance) {
      facts = this.#read(number, instance);
      if (facts === undefined) return undefined;
      this.#facts.set(number, facts);
    }
    const { key, name, cell, isOfVm } = facts;
    const effective = () => cpuList(this.#deps.files.readOnce(join(directory, 'effective_affinity_list')));
    const file = { path, parse: cpuList, format: String };
    return fileKnob(this.#deps, file, { kind: 'irq', key, name, cell, isOfVm, inheritsFrom: DEFAULT_KEY, effective });
  }

  /** Undefined for an interrupt without a handler. */
  #read(number: string, instance: number): IrqFacts | undefined {
    const { files, procRoot, sysfsRoot } = this.#deps;
    const about = (name: string) => files.readOnce(join(sysfsRoot, 'kernel/irq', number, name)) ?? '';
    const actions = about('actions');
    if (actions === '') return undefined;
    const chip = about('chip_name');
    const address = /[\da-f]{4,8}:[\da-f]{2}:[\da-f]{2}\.[0-7]$/.exec(chip)?.[0];
    const node = files.readOnce(join(procRoot, 'irq', number, 'node')) ?? '';
    const ofDevice =
      address === undefined ? '' : (files.readOnce(join(sysfsRoot, 'bus/pci/devices', address, 'numa_node')) ?? '');
    const cell = [node, ofDevice].find((text) => /^\d+$/.test(text));
    // An MSI's number names its device and vector. Its action has the name of the NIC when that was opened.
    const driver =
      address === undefined ? undefined : files.linkName(join(sysfsRoot, 'bus/pci/devices', address, 'driver'));
    return {
      key: `irq ${chip} ${about('hwirq')} ${driver ?? actions}`,
      name: `${number} ${actions}`,
      cell: cell === undefined ? undefined : Number(cell),
      isOfVm: actions.startsWith('vfio-msi'),
      instance,
    };
  }

  #forget(number: string): void {
    this.#facts.delete(number);
    this.#deps.files.close(join(this.#deps.procRoot, 'irq', number, 'smp_affinity_list'));
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
      const node = files.readOnce(join(root, nic, 'device/numa_node')) ?? '';
      const cell = /^\d+$/.test(node) ? Number(node) : undefined;
      const queues = files.list(join(root, nic, 'queues')).filter((name) => name.startsWith('rx-'));
      return queues.flatMap((queue) => {
        const path = join(root, nic, 'queues', queue, 'rps_cpus');
        const knob = this.#knob(path, `${nic} ${queue}`, cell);
        if (knob !== undefined) open.add(path);
        return knob ?? [];
      });
    });
    for (const path of this.#open) if (!open.has(path)) files.close(path);
    this.#open = open;
    return knobs;
  }

  #knob(path: string, name: string, cell: number | undefined): Knob | undefined {
    const { files } = this.#deps;
    const instance = files.inode(path);
    const knob = fileKnob(this.#deps, { path, parse: cpuMask, format: maskText }, { kind: 'rps', key: '', name, cell });
    if (knob?.current.isEmpty === false && instance !== undefined) {
      const write = (cpus: CpuSet) => files.write(path, maskText(cpus), instance);
      const read = () => (files.inode(path) === instance ? knob.read() : undefined);
      return { ...knob, key: `rps ${instance}`, instance, read, write };
    }
    files.close(path);
    return undefined;
  }
}

/** The CPUs of isolated cpuset partitions. */
export function partitionCpus({ files, sysfsRoot }: KnobDeps): CpuSet {
  return cpuMask(files.read(join(sysfsRoot, WORKQUEUE, 'cpumask_isolated'))?.text) ?? CpuSet.EMPTY;
}

/** The CPUs of unbound workqueues, without those that the kernel takes away for isolated cpuset partitions. */
export function workqueueKnobs(deps: KnobDeps): Knob[] {
  const root = join(deps.sysfsRoot, WORKQUEUE);
  const path = join(root, 'cpumask');
  const knob = fileKnob(
    deps,
    { path, parse: cpuMask, format: maskText },
    { kind: 'workqueue', key: 'workqueue', name: 'unbound workqueues' },
  );
  if (knob === undefined) return [];
  // What was asked for, which a partition does not change; writing replaces it.
  const requested = () => cpuMask(deps.files.read(join(root, 'cpumask_requested'))?.text) ?? knob.read();
  // A write replaces the isolation of partitions.
  const write = (cpus: CpuSet) => knob.write(cpus.minus(partitionCpus(deps)));
  return [{ ...knob, current: requested() ?? knob.current, read: requested, write }];
}

export function defaultAffinityKnobs(deps: KnobDeps): Knob[] {
  const path = join(deps.procRoot, 'irq/default_smp_affinity');
  const file = { path, parse: cpuMask, format: maskText };
  return [fileKnob(deps, file, { kind: 'default', key: DEFAULT_KEY, name: 'new interrupts' }) ?? []].flat();
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
  readonly #facts = new Map<number, { readonly name: string; readonly start: number } | undefined>();

  constructor(deps: KnobDeps) {
    this.#deps = deps;
  }

  scan(): Knob[] {
    const { files, procRoot } = this.#deps;
    const path = join(procRoot, `${KTHREADD}/task/${KTHREADD}/children`);
    const children = files.readOnce(path);
    if (children === undefined) return [];
    // The parent first: others have its CPUs.
    const tids = [KTHREADD, ...children.split(' ').filter(Boolean).map(Number)];
    const present = new Set(tids);
    for (const tid of this.#facts.keys()) if (!present.has(tid)) this.#facts.delete(tid);
    return tids.flatMap((tid) => this.#knob(tid) ?? []);
  }

  #knob(tid: number): Knob | undefined {
    if (!this.#facts.has(tid)) this.#facts.set(tid, this.#read(tid));
    const facts = this.#facts.get(tid);
    const { affinity } = this.#deps;
    const current = facts && allowedOf(affinity, tid);
    if (facts === undefined || current === undefined) return undefined;
    const key = `kthread ${tid} ${facts.start}`;
    const { start } = this.#facts.get(KTHREADD) ?? {};
    return {
      ...{ kind: 'kthread', key, instance: facts.start, name: facts.name, cell: undefined, isOfVm: false, current },
      inheritsFrom: tid === KTHREADD ? undefined : `kthread ${KTHREADD} ${start}`,
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
