import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { CpuSet, unionOf } from '../../model/cpu-set.ts';
import type { Host, HostCpu } from '../../model/host.ts';

/** Writes what hwloc, the kubelet and the node agent read about a host's CPUs. @param root replaces /sys */
export async function writeSysfs(root: string, host: Host): Promise<void> {
  const files = new Map<string, string>();
  const cpus = 'devices/system/cpu';
  for (const list of ['online', 'present', 'possible']) files.set(`${cpus}/${list}`, host.online.toString());
  files.set(`${cpus}/offline`, '');
  files.set(`${cpus}/smt/active`, host.cores.some((core) => core.size > 1) ? '1' : '0');
  for (const cpu of host.cpus)
    for (const [name, text] of cpuFiles(host, cpu)) files.set(`${cpus}/cpu${cpu.id}/${name}`, text);
  const nodes = 'devices/system/node';
  files.set(`${nodes}/online`, CpuSet.of(host.cells.map(({ id }) => id)).toString());
  for (const cell of host.cells) {
    files.set(`${nodes}/node${cell.id}/cpulist`, cell.cpus.toString());
    files.set(`${nodes}/node${cell.id}/distance`, host.cells.map(({ id }) => (id === cell.id ? 10 : 21)).join(' '));
  }
  for (const [name, text] of files) {
    const file = join(root, name);
    await mkdir(join(file, '..'), { recursive: true });
    await writeFile(file, `${text}\n`);
  }
}

function* cpuFiles(host: Host, cpu: HostCpu): Iterable<[string, string]> {
  const siblings = host.cores.find((core) => core.has(cpu.id)) ?? CpuSet.of([cpu.id]);
  const sharing = (key: 'socket' | 'uncore') =>
    CpuSet.of(host.cpus.filter((other) => other[key] === cpu[key]).map(({ id }) => id)).toString();
  yield ['online', '1'];
  // The kernel numbers cores within each package; ids are only comparable within one package.
  yield ['topology/core_id', String(coreNumber(host, cpu))];
  yield ['topology/physical_package_id', String(cpu.socket)];
  yield ['topology/thread_siblings_list', siblings.toString()];
  yield ['topology/core_cpus_list', siblings.toString()];
  yield ['topology/package_cpus_list', sharing('socket')];
  yield ['cache/index3/level', '3'];
  yield ['cache/index3/type', 'Unified'];
  yield ['cache/index3/id', String(cpu.uncore)];
  yield ['cache/index3/size', '32768K'];
  yield ['cache/index3/shared_cpu_list', sharing('uncore')];
  const words = [...CpuSet.parse(sharing('uncore')).toWords()].reverse();
  yield ['cache/index3/shared_cpu_map', words.map((word) => word.toString(16).padStart(8, '0')).join(',')];
}

const sameSocket = (host: Host, { socket }: HostCpu) =>
  host.cpus.filter((cpu) => cpu.socket === socket).map(({ id }) => id);

const lowest = (core: CpuSet) => CpuSet.of([core.first ?? 0]);

function coreNumber(host: Host, cpu: HostCpu): number {
  const inSocket = unionOf(host.cores.filter((core) => core.intersects(CpuSet.of(sameSocket(host, cpu)))).map(lowest));
  return [...inSocket].indexOf(cpu.core);
}
