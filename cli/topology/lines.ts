import type { CpuSet } from '../../model/cpu-set.ts';
import { unevenCore } from '../../model/host.ts';
import { bytesText } from '../../model/quantity.ts';
import { drawCpuMap } from '../support/cpu-map.ts';
import { tableLines } from '../support/table.ts';
import { countText, joinParts, type Line, paint } from '../support/terminal.ts';
import type { Machine } from './read.ts';

/** The machine as a diagram: NUMA nodes with their NICs, cores, threads. */
export function machineLines(machine: Machine, width: number, wide = false): Line[] {
  const { host, memory, isolated, caches, nics } = machine;
  const sockets = new Set(host.cpus.map(({ socket }) => socket)).size;
  const parts = [
    countText(host.online.size, 'CPU'),
    countText(host.cores.length, 'core'),
    countText(host.cells.length, 'NUMA node'),
    countText(sockets, 'socket'),
  ];
  const labels = new Map(
    host.cells.map(({ id }) => {
      const own = memory.cells.find((cell) => cell.id === id);
      const pages = Object.entries(own?.hugePages ?? {}).map(([name, bytes]) => `${bytesText(bytes)} in ${name}`);
      const here = nics.filter(({ cells }) => cells.includes(id)).map(({ name }) => name);
      const amounts = [own === undefined ? undefined : bytesText(own.memory), ...pages, here.join(' ') || undefined];
      return [id, amounts.filter((text) => text !== undefined).join(', ')] as const;
    }),
  );
  const cellLabels = new Map([...labels].filter(([, label]) => label !== ''));
  const owners = isolated.isEmpty
    ? []
    : [{ mark: 'i', label: 'isolated (isolcpus)', cpus: isolated, style: 'yellow' as const }];
  const uneven = unevenCore(host);
  return [
    [paint('bold', parts.join(', '))],
    ...(uneven
      ? [`! core ${uneven} has a different number of threads: the kubelet cannot assign whole cores here`]
      : []),
    '',
    ...drawCpuMap({ host, owners, cellLabels, width }),
    ...cacheLines(caches, host.online, wide),
    ...nicLines(machine),
    ...(wide ? distanceLines(machine) : []),
  ];
}

function cacheLines(caches: Machine['caches'], online: CpuSet, wide: boolean): Line[] {
  if (caches.length === 0) return [];
  const levels = new Map<string, Machine['caches'][number][]>();
  for (const cache of caches) {
    const letter = { data: 'd', instruction: 'i', unified: '' }[cache.type];
    const name = `L${cache.level}${letter}`;
    levels.set(name, [...(levels.get(name) ?? []), cache]);
  }
  const lines = [...levels].map(([name, list]) => {
    const [first] = list;
    const each = first?.size === undefined ? '' : ` of ${bytesText(first.size)}`;
    const shared = first?.cpus.equals(online)
      ? 'shared by all CPUs'
      : `each shared by ${countText(first?.cpus.size ?? 0, 'CPU')}`;
    const text = `  ${name.padEnd(4)} ${list.length}${each}, ${shared}`;
    const sets = list.map(({ cpus }) => cpus.toString());
    return wide ? [`${text}: `, ...joinParts(sets, ' | ')] : text;
  });
  return ['', 'Caches', ...lines];
}

function nicLines({ nics }: Machine): string[] {
  if (nics.length === 0) return ['', 'this machine has no physical network interface'];
  const rows = nics.map(({ name, cells, pci, driver, up, speed, virtualFunctions }) => [
    name,
    cells.length === 0 ? 'unknown' : cells.join(','),
    pci ?? '-',
    driver ?? '-',
    `${up === undefined ? '-' : up ? 'up' : 'no carrier'}${speed === undefined ? '' : ` ${speed / 1000} Gb/s`}`,
    virtualFunctions === 0 ? '-' : `${virtualFunctions}`,
  ]);
  return ['', ...tableLines(['NIC', 'NUMA NODE', 'PCI', 'DRIVER', 'LINK', 'VFS'], rows)];
}

function distanceLines({ memory }: Machine): string[] {
  const rows = Object.entries(memory.distances ?? {});
  if (rows.length < 2) return [];
  return ['', 'Distances', ...rows.map(([id, row]) => `  ${id}: ${row.join(' ')}`)];
}
