import { closeSync, existsSync, openSync, writeSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { CpuSet } from '../../model/cpu-set.ts';
import {
  directoriesIn,
  ifPresent,
  readIfPresent,
  statIfPresent,
  UnreadableError,
  unlessUnreadable,
} from './readable.ts';

/** The CPUs that the kubelet gave to running containers, except containers whose cpuset is empty. */
export interface ContainerCpus {
  /** One set for each container of Guaranteed pods: its own CPUs, or the shared pool. */
  readonly guaranteed: readonly CpuSet[];
  /** The sets of all other containers, without duplicates: the current or a former shared pool. */
  readonly others: readonly CpuSet[];
}

/**
 * The Node Tuning Operator of OpenShift writes the CPUs of OVS-DPDK there (spec.cpu.ovsDpdk of a PerformanceProfile;
 * assets/performanceprofile/scripts/ovs-dpdk-cpus-configure.sh).
 */
const DPDK_CPUS = 'ovs.slice/cpuset.cpus.exclusive';
/** virt-handler creates it if the emulator has its own CPU; threaded on version 2. */
const HOUSEKEEPING = 'housekeeping';
/** A level that crun adds below the container's cgroup. */
const CRUN_LEVEL = 'container';
/** Maximum bytes read of a cgroup file, and maximum processes of a container, which can start any number. */
const MAX_BYTES = 32 * 1024;
const MAX_PROCESSES = 256;
/** The cgroups of the other QoS classes; Guaranteed pods are next to these. */
const CLASS = /(?:^|[-/])(?:burstable|besteffort)(?:\.slice)?$/;
const POD = /(?:^|-)pod[0-9a-f][-_0-9a-f]+(?:\.slice)?$/;
const KUBEPODS = /^(?:.+-)?kubepods(?:\.slice)?$/;

/**
 * The cgroups below a mount point, of version 1 or 2 and either driver. It writes only the cpuset of an existing
 * `housekeeping` cgroup, and creates none. Its methods return undefined for a cgroup that does not exist, and throw
 * UnreadableError if that is unknown.
 *
 * Owner: the kubelet, the runtime and virt-handler. Age: read at each call, except where the kubelet's topmost cgroups
 * are, which is looked up again for a pod that is not there. End: with this process.
 */
export class CgroupTree {
  readonly version: 1 | 2;
  readonly #root: string;
  readonly #top: string;
  /** The names of the file with the CPUs in use: requested ones may be offline. */
  readonly #effective: readonly string[];
  #bases: readonly string[] = [];
  #dpdkCpus = CpuSet.EMPTY;

  /** @param root the mount point of cgroups: /sys/fs/cgroup of the host */
  constructor(root: string) {
    this.#root = root;
    this.version = existsSync(join(root, 'cgroup.controllers')) ? 2 : 1;
    this.#top = this.version === 2 ? root : join(root, 'cpuset');
    this.#effective = this.version === 2 ? ['cpuset.cpus.effective'] : ['cpuset.effective_cpus', 'cpuset.cpus'];
  }

  /** The cgroup of a container's processes. */
  container(podUID: string, containerId: string): string | undefined {
    const directory = () => this.#bases.flatMap((base) => podPaths(base, podUID)).find(isPresent);
    let pod = directory();
    if (pod === undefined) {
      // The kubelet creates its cgroups when it starts, possibly after the agent.
      this.#bases = findBases(this.#top);
      pod = directory();
    }
    const name = pod && directoriesIn(pod).find((entry) => isOf(entry, containerId));
    if (pod === undefined || name === undefined) return undefined;
    const inner = join(pod, name, CRUN_LEVEL);
    return isPresent(inner) ? inner : join(pod, name);
  }

  /** Ids of the first processes in a container, including cgroups below it. */
  processes(container: string): number[] | undefined {
    const directPids = ids(join(container, 'cgroup.procs'));
    if (directPids === undefined) return undefined;
    // Version 1 lists a process wherever one of its threads is; version 2 lists it above the threaded cgroups.
    const below = this.version === 1 ? (ids(join(container, HOUSEKEEPING, 'cgroup.procs')) ?? []) : [];
    return [...new Set([...directPids.slice(0, MAX_PROCESSES), ...below.slice(0, MAX_PROCESSES)])];
  }

  /** The CPUs that a container may use now. */
  cpuset(container: string): CpuSet | undefined {
    // If the controller is not enabled for pods, the CPUs of the nearest cgroup above are effective.
    for (let at = container; at.startsWith(this.#top); at = dirname(at)) {
      for (const name of this.#effective) {
        const set = cpus(join(at, name));
        if (set !== undefined) return set;
      }
      if (!isPresent(container)) return undefined;
    }
    return undefined;
  }

  /** The last ones that could be read. */
  readonly dedicatedToDpdk = (): CpuSet => {
    const read = () => cpus(join(this.#root, DPDK_CPUS)) ?? CpuSet.EMPTY;
    this.#dpdkCpus = unlessUnreadable(read, this.#dpdkCpus);
    return this.#dpdkCpus;
  };

  /** The CPUs of all running containers; undefined if the kubelet's cgroups are missing or not all can be read. */
  readonly containers = (): ContainerCpus | undefined =>
    unlessUnreadable(() => {
      this.#bases = findBases(this.#top);
      if (this.#bases.length === 0) return undefined;
      const classes = this.#bases.flatMap((base) => below(base).filter((path) => CLASS.test(path)));
      return { guaranteed: this.#bases.flatMap(setsOfPods), others: distinct(classes.flatMap(setsOfPods)) };
    }, undefined);

  /** The CPUs of virt-handler's cgroup below a container. */
  housekeeping(container: string): CpuSet | undefined {
    const file = join(container, HOUSEKEEPING, 'cpuset.cpus');
    // Most containers have none, and an error would cost ten times as much as this check.
    return isPresent(file) ? cpus(file) : undefined;
  }

  /** Sets the CPUs of that cgroup. @throws a system error */
  setHousekeeping(container: string, set: CpuSet): void {
    // Opens without creating: the agent creates no cgroup.
    const file = openSync(join(container, HOUSEKEEPING, 'cpuset.cpus'), 'r+');
    try {
      writeSync(file, set.toString());
    } finally {
      closeSync(file);
    }
  }
}

/** The kubelet's topmost cgroups: at the root, or one level down if --cgroup-root is set. */
function findBases(top: string): string[] {
  const first = directoriesIn(top);
  const bases = first.filter((name) => KUBEPODS.test(name)).map((name) => join(top, name));
  if (bases.length > 0) return bases;
  return first.flatMap((name) => below(join(top, name)).filter((path) => KUBEPODS.test(basename(path))));
}

/** The sets of the running containers of the pods directly below a cgroup. */
function setsOfPods(parent: string): CpuSet[] {
  const pods = below(parent).filter((path) => POD.test(basename(path)));
  return pods
    .flatMap(below)
    .filter(isPopulated)
    .flatMap((container) => cpusetOf(container) ?? []);
}

function distinct(sets: readonly CpuSet[]): CpuSet[] {
  return [...new Map(sets.map((set) => [set.toString(), set])).values()];
}

/** With crun, either level may contain the cpuset that the kubelet requested. */
function cpusetOf(container: string): CpuSet | undefined {
  const sets = [join(container, CRUN_LEVEL), container].map((level) => cpus(join(level, 'cpuset.cpus')));
  return sets.find((set) => set?.isEmpty === false);
}

/** Whether the cgroup, or one below it, contains a process. */
function isPopulated(container: string): boolean {
  const events = read(join(container, 'cgroup.events'));
  if (events !== undefined) return /^populated 1$/m.test(events);
  if ((read(join(container, 'cgroup.procs')) ?? '') !== '') return true;
  return directoriesIn(container).some((name) => isPopulated(join(container, name)));
}

function below(path: string): string[] {
  return directoriesIn(path).map((name) => join(path, name));
}

/** The possible paths of a pod in each QoS class. The systemd driver repeats the parents' names and replaces dashes. */
function podPaths(base: string, uid: string): string[] {
  const name = basename(base);
  const classes = ['', 'burstable', 'besteffort'];
  if (!name.endsWith('.slice')) return classes.map((of) => join(base, of, `pod${uid}`));
  const prefix = name.slice(0, -'.slice'.length);
  const pod = `pod${uid.replaceAll('-', '_')}.slice`;
  return classes.map((of) =>
    of === '' ? join(base, `${prefix}-${pod}`) : join(base, `${prefix}-${of}.slice`, `${prefix}-${of}-${pod}`),
  );
}

/** `<id>`, `cri-containerd-<id>.scope`, `crio-<id>.scope`; not the cgroup of its conmon. */
function isOf(entry: string, containerId: string): boolean {
  return entry === containerId || (entry.endsWith(`-${containerId}.scope`) && !entry.includes('-conmon-'));
}

function isPresent(path: string): boolean {
  return statIfPresent(path) !== undefined;
}

/** If the file exceeds the limit, the last id may be incomplete and is dropped. */
function ids(file: string): number[] | undefined {
  const text = read(file);
  const whole = text !== undefined && text.length >= MAX_BYTES ? text.slice(0, text.lastIndexOf('\n')) : text;
  return whole?.split('\n').filter(Boolean).map(Number);
}

/** A list that is torn or exceeds the limit is unreadable. */
function cpus(file: string): CpuSet | undefined {
  const text = read(file);
  if (text === undefined) return undefined;
  if (text.length >= MAX_BYTES) throw new UnreadableError(file, new Error(`larger than ${MAX_BYTES} bytes`));
  return ifPresent(file, () => CpuSet.parse(text));
}

function read(file: string): string | undefined {
  return readIfPresent(file, MAX_BYTES);
}
