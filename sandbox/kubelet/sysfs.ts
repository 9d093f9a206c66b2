import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { CpuSet } from '../../model/cpu-set.ts';
import type { Host, HostCpu } from '../../model/host.ts';

/** What the node agent reads about a host's CPUs. @param root replaces /sys */
export async function writeSysfs(root: string, host: Host): Promise<void> {
  const files = new Map<string, string>();
  const cpus = 'devices/system/cpu';
  for (const list of ['online', 'present']) files.set(`${cpus}/${list}`, host.online.toString());
  for (const cpu of host.cpus) {
    for (const [name, text] of cpuFiles(host, cpu)) files.set(`${cpus}/cpu${cpu.id}/${name}`, text);
  }
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
  const shared = CpuSet.of(host.cpus.filter(({ uncore }) => uncore === cpu.uncore).map(({ id }) => id));
  yield ['online', '1'];
  // The kernel numbers cores within each package; ids are only comparable within one package.
  yield ['topology/core_id', String(coreNumber(host, cpu))];
  yield ['topology/physical_package_id', String(cpu.socket)];
  yield ['topology/thread_siblings_list', siblings.toString()];
  yield ['cache/index3/level', '3'];
  yield ['cache/index3/type', 'Unified'];
  yield ['cache/index3/id', String(cpu.uncore)];
  yield ['cache/index3/size', '32768K'];
  yield ['cache/index3/shared_cpu_list', shared.toString()];
  const words = [...shared.toWords()].reverse();
  yield ['cache/index3/shared_cpu_map', words.map((word) => word.toString(16).padStart(8, '0')).join(',')];
}

function coreNumber(host: Host, { socket, core }: HostCpu): number {
  const cores = new Set(host.cpus.filter((cpu) => cpu.socket === socket).map((cpu) => cpu.core));
  return [...cores].sort((a, b) => a - b).indexOf(core);
}
