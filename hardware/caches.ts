import { join } from 'node:path';
import { CpuSet } from '../model/cpu-set.ts';
import { entries, readId, readOptional } from './sysfs.ts';

/** A cache and the CPUs that share it. */
export interface Cache {
  readonly level: number;
  readonly type: 'data' | 'instruction' | 'unified';
  /** Size in bytes; undefined if the kernel does not report it. */
  readonly size: number | undefined;
  readonly cpus: CpuSet;
}

/**
 * The caches of the online CPUs, each once, by level, then by their first CPU. Empty if the kernel reports none, as on
 * many virtual machines.
 *
 * Source: Documentation/ABI/testing/sysfs-devices-system-cpu of the kernel.
 * @throws ParseError if a CPU list is malformed
 */
export async function readCaches(root: string, online: CpuSet): Promise<Cache[]> {
  const found = new Map<string, Cache>();
  for (const cpu of online) {
    const directory = join(root, `devices/system/cpu/cpu${cpu}/cache`);
    for (const index of await entries(directory, /^index\d+$/)) {
      const cache = await readCache(join(directory, index), online);
      if (cache) found.set(`${cache.level} ${cache.type} ${cache.cpus}`, cache);
    }
  }
  return [...found.values()].sort((a, b) => a.level - b.level || (a.cpus.first ?? 0) - (b.cpus.first ?? 0));
}

async function readCache(directory: string, online: CpuSet): Promise<Cache | undefined> {
  const level = await readId(join(directory, 'level'));
  const shared = await readOptional(join(directory, 'shared_cpu_list'));
  if (level === undefined || shared === undefined) return undefined;
  const type = (await readOptional(join(directory, 'type')))?.trim().toLowerCase();
  return {
    level,
    type: type === 'data' || type === 'instruction' ? type : 'unified',
    size: bytesOf((await readOptional(join(directory, 'size'))) ?? ''),
    cpus: CpuSet.parse(shared).intersect(online),
  };
}

const UNITS: Readonly<Record<string, number>> = { K: 1024, M: 1024 ** 2, G: 1024 ** 3 };

/** Parses `32K`, the kernel's format for cache sizes. */
function bytesOf(text: string): number | undefined {
  const [, amount, unit = ''] = /^(\d+)([KMG]?)$/.exec(text.trim()) ?? [];
  return amount === undefined ? undefined : Number(amount) * (UNITS[unit] ?? 1);
}
