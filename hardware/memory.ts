import { join } from 'node:path';
import type { CellMemory } from '../model/kubelet/memory-state.ts';
import { entries, numaNodeIds, readId, readOptional } from './sysfs.ts';

export interface HostMemory {
  /** Bytes by NUMA node, including nodes without CPUs; only nodes whose memory the kernel reports. */
  readonly cells: readonly CellMemory[];
  /** Distances of each NUMA node to the nodes that have CPUs, ascending by id. Undefined: the kernel reports none. */
  readonly distances: Readonly<Record<string, number[]>> | undefined;
}

/** Also nodes without CPUs, which the memory manager assigns. Source: cAdvisor's GetNodesInfo, as in the kubelet. */
export async function readMemory(root: string, cellIds: readonly number[]): Promise<HostMemory> {
  const directory = join(root, 'devices/system/node');
  const ids = await numaNodeIds(directory);
  const cells: CellMemory[] = [];
  const distances: Record<string, number[]> = {};
  for (const id of ids) {
    const node = join(directory, `node${id}`);
    // `Node 0 MemTotal:       65842204 kB`
    const kibibytes = /MemTotal:\s+(\d+) kB/.exec((await readOptional(join(node, 'meminfo'))) ?? '')?.[1];
    if (kibibytes !== undefined) {
      const hugePages = await readHugePages(join(node, 'hugepages'));
      cells.push({ id, memory: Number(kibibytes) * 1024, ...(Object.keys(hugePages).length > 0 && { hugePages }) });
    }
    if (!cellIds.includes(id)) continue;
    const row = parseDistances((await readOptional(join(node, 'distance'))) ?? '', ids, cellIds);
    if (row !== undefined) distances[String(id)] = row;
  }
  return { cells, distances: Object.keys(distances).length === cellIds.length ? distances : undefined };
}

/** Bytes by resource name, for each page size that the node has pages of. */
async function readHugePages(directory: string): Promise<Record<string, number>> {
  const bytes: Record<string, number> = {};
  for (const name of await entries(directory, /^hugepages-\d+kB$/)) {
    const kibibytes = Number(/\d+/.exec(name)?.[0]);
    const pages = (await readId(join(directory, name, 'nr_hugepages'))) ?? 0;
    if (pages > 0) bytes[hugePagesName(kibibytes)] = pages * kibibytes * 1024;
  }
  return bytes;
}

/** `hugepages-2Mi` for 2048. */
export function hugePagesName(kibibytes: number): string {
  const units = ['Ki', 'Mi', 'Gi', 'Ti'];
  let [amount, unit] = [kibibytes, 0];
  while (amount % 1024 === 0 && unit < units.length - 1) {
    amount /= 1024;
    unit++;
  }
  return `hugepages-${amount}${units[unit]}`;
}

/** Parses a row of distances. It has a column for each online node, with or without CPUs. */
function parseDistances(text: string, ids: readonly number[], cellIds: readonly number[]): number[] | undefined {
  const columns = text.trim().split(/\s+/).map(Number);
  const row = cellIds.map((id) => columns[ids.indexOf(id)]).filter((distance) => Number.isInteger(distance));
  return row.length === cellIds.length ? (row as number[]) : undefined;
}
