import { mkdirSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { CpuSet, unionOf } from '../../model/cpu-set.ts';
import { writeTree } from '../support/files.ts';

/** A machine of test/vectors/kubelet-discovery.json. Arrays have an entry for each CPU of `cpus`; null: no such file. */
export interface RecordedMachine {
  readonly name: string;
  /** The CPUs that are present. */
  readonly cpus: string;
  readonly offline?: string;
  readonly core: readonly (number | null)[];
  readonly package: readonly (number | null)[];
  /** The kernel's siblings. Absent: each CPU alone. */
  readonly siblings?: readonly string[];
  /** CPUs of each NUMA node by id, '' for memory only. Absent: no NUMA directories. */
  readonly nodes?: Readonly<Record<string, string>>;
  /** Caches: level, id and CPUs. */
  readonly caches?: readonly (readonly [number, number | null, string])[];
  /** CPUs without a cache directory. */
  readonly cacheless?: string;
}

/** Writes the sysfs of a machine, with the files that cAdvisor reads. */
export function writeMachine(root: string, machine: RecordedMachine): void {
  const files: Record<string, string> = {};
  const base = 'devices/system';
  const present = CpuSet.parse(machine.cpus);
  const offline = CpuSet.parse(machine.offline ?? '');
  const cacheless = CpuSet.parse(machine.cacheless ?? '');
  const online = present.minus(offline);
  const caches = (machine.caches ?? []).map(([level, id, cpus]) => ({ level, id, cpus: CpuSet.parse(cpus) }));
  files[`${base}/cpu/online`] = `${online}\n`;
  files[`${base}/cpu/present`] = `${present}\n`;
  [...present].forEach((id, position) => {
    const cpu = `${base}/cpu/cpu${id}`;
    if (offline.has(id)) {
      files[`${cpu}/online`] = '0\n';
      return;
    }
    const siblings = machine.siblings?.find((list) => CpuSet.parse(list).has(id)) ?? `${id}`;
    const [core, socket] = [machine.core[position], machine.package[position]];
    files[`${cpu}/topology/thread_siblings_list`] = `${CpuSet.parse(siblings).minus(offline)}\n`;
    if (core != null) files[`${cpu}/topology/core_id`] = `${core}\n`;
    if (socket != null) files[`${cpu}/topology/physical_package_id`] = `${socket}\n`;
    if (cacheless.has(id)) return;
    const own = caches.filter(({ cpus }) => cpus.has(id));
    own.forEach(({ level, id: cacheId, cpus }, index) => {
      const cache = `${cpu}/cache/index${index}`;
      const shared = cpus.minus(offline);
      Object.assign(files, {
        [`${cache}/level`]: `${level}\n`,
        [`${cache}/type`]: 'Unified\n',
        [`${cache}/size`]: '1024K\n',
        [`${cache}/shared_cpu_list`]: `${shared}\n`,
        [`${cache}/shared_cpu_map`]: `${maskOf(shared)}\n`,
      });
      if (cacheId !== null) files[`${cache}/id`] = `${cacheId}\n`;
    });
  });
  for (const [id, cpus] of Object.entries(machine.nodes ?? {})) {
    files[`${base}/node/node${id}/cpulist`] = `${CpuSet.parse(cpus).minus(offline)}\n`;
    files[`${base}/node/node${id}/meminfo`] = `Node ${id} MemTotal:       67108864 kB\n`;
  }
  writeTree(root, files);
  for (const [id, cpus] of Object.entries(machine.nodes ?? {})) {
    const directory = join(root, base, `node/node${id}`);
    mkdirSync(directory, { recursive: true });
    for (const cpu of CpuSet.parse(cpus)) symlinkSync(`../../cpu/cpu${cpu}`, join(directory, `cpu${cpu}`));
  }
  if (!unionOf(Object.values(machine.nodes ?? {}).map((list) => CpuSet.parse(list))).isSubsetOf(present)) {
    throw new Error(`${machine.name}: a NUMA node has a CPU that is not present`);
  }
}

/** The kernel's format: words of 32 bits, the highest first. */
function maskOf(cpus: CpuSet): string {
  const words = [...cpus.toWords(Math.floor((cpus.toArray().at(-1) ?? 0) / 32) + 1)].reverse();
  return words.map((word) => word.toString(16).padStart(8, '0')).join(',');
}
