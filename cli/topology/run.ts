import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { readMemory } from '../../hardware/memory.ts';
import { readNics } from '../../hardware/nic-cells.ts';
import { readCaches, readIsolated, readOffline, readSysfs } from '../../hardware/sysfs.ts';
import { countText } from '../../model/amounts.ts';
import { CpuSet } from '../../model/cpu-set.ts';
import { PlumblineError } from '../../model/errors.ts';
import { createHost, unevenCore } from '../../model/host.ts';
import { describeSysfs, groupCpus } from '../../model/host-sysfs.ts';
import { byText, groupBy } from '../../model/lists.ts';
import { bytesText } from '../../model/quantity.ts';
import { drawCpuMap } from '../support/cpu-map.ts';
import { numbersOf } from '../support/cpus.ts';
import { CliError, EXIT, usageError } from '../support/exit-status.ts';
import { type OutputFormat, print } from '../support/output.ts';
import { joinParts, type Line, paint, tableLines } from '../support/terminal.ts';

interface TopologyFlags {
  readonly sysfsRoot: string;
  readonly output?: OutputFormat;
}

/** Prints the topology of this machine. @throws CliError if this is not sysfs, or it describes no machine */
export async function run({ sysfsRoot, output }: TopologyFlags): Promise<void> {
  if (!existsSync(join(sysfsRoot, 'devices/system/cpu'))) {
    throw usageError(`${sysfsRoot} is not sysfs: this command needs Linux; give the path of sysfs with --sysfs-root`);
  }
  const machine = await readMachine(sysfsRoot).catch((error: unknown) => {
    if (!(error instanceof PlumblineError)) throw error;
    throw new CliError(EXIT.findings, `cannot describe this machine: ${error.message}`, { cause: error });
  });
  await print(output, topologyData(machine), { text: ({ width }, wide) => machineLines(machine, width, wide) });
}

/** The text output of `plumbline topology`. @param width columns @param wide lists are not shortened */
function machineLines(machine: Machine, width: number, wide = false): Line[] {
  const { host, cells, isolated, offline, caches } = machine;
  const sockets = new Set(host.cpus.map(({ socket }) => socket)).size;
  const memoryOnly = cells.length - host.cells.length;
  const parts = [
    countText(host.online.size, 'CPU'),
    countText(host.cores.length, 'core'),
    countText(cells.length, 'NUMA node') + (memoryOnly > 0 ? ` (${memoryOnly} without CPUs)` : ''),
    countText(sockets, 'socket'),
  ];
  const owners = isolated.isEmpty
    ? []
    : [{ mark: 'i', label: 'isolated (isolcpus)', cpus: isolated, style: 'yellow' as const }];
  return [
    [paint('bold', parts.join(', '))],
    ...(offline.isEmpty ? [] : [`${countText(offline.size, 'CPU')} offline: ${offline}`]),
    '',
    ...drawCpuMap({ host: { ...host, cells }, owners, cellLabels: labelsOf(machine), width }),
    ...cacheLines(caches, host.online, wide),
    ...nicLines(machine),
    ...(wide ? distanceLines(machine) : []),
  ];
}

function labelsOf({ cells, memory, nics }: Machine): Map<number, string> {
  const labels = cells.map(({ id, cpus }) => {
    const cellMemory = memory.cells.find((cell) => cell.id === id);
    const pages = Object.entries(cellMemory?.hugePages ?? {}).map(([name, bytes]) => `${bytesText(bytes)} in ${name}`);
    const names = nics.filter((nic) => nic.cells.includes(id)).map(({ name }) => name);
    const amounts = [
      cellMemory === undefined ? undefined : bytesText(cellMemory.memory),
      ...pages,
      names.join(' ') || undefined,
      cpus.isEmpty ? 'no CPUs' : undefined,
    ];
    return [id, amounts.filter((text) => text !== undefined).join(', ')] as const;
  });
  return new Map(labels.filter(([, label]) => label !== ''));
}

const nameOf = ({ level, type }: Machine['caches'][number]) =>
  `L${level}${{ data: 'd', instruction: 'i', unified: '' }[type]}`;

function cacheLines(caches: Machine['caches'], online: CpuSet, wide: boolean): Line[] {
  if (caches.length === 0) return [];
  const kinds = groupBy(caches, ({ level, type, size, cpus }) => `${level} ${type} ${size} ${cpus.size}`);
  const ordered = [...kinds.values()].sort(byText(([cache]) => nameOf(cache!)));
  const lines = ordered.map((list) => {
    const { size, cpus } = list[0]!;
    const each = size === undefined ? '' : ` of ${bytesText(size)}`;
    const scope = `${list.length > 1 ? 'each ' : ''}${cpus.size > 1 ? 'shared by' : 'of'} ${countText(cpus.size, 'CPU')}`;
    const shared = cpus.equals(online) ? 'shared by all CPUs' : scope;
    const text = `  ${nameOf(list[0]!).padEnd(4)} ${list.length}${each}, ${shared}`;
    const sets = list.map((cache) => cache.cpus.toString());
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

type Machine = Awaited<ReturnType<typeof readMachine>>;

/** @throws SysfsError, HostError, ParseError */
async function readMachine(root: string) {
  const host = createHost(describeSysfs(await readSysfs(root)));
  const ids = host.cells.map(({ id }) => id);
  const [memory, isolated, offline, caches, nics] = await Promise.all([
    readMemory(root, ids),
    readIsolated(root),
    readOffline(root),
    readCaches(root, host.online),
    readNics(root),
  ]);
  const memoryOnly = memory.cells.filter(({ id }) => !ids.includes(id)).map(({ id }) => ({ id, cpus: CpuSet.EMPTY }));
  const cells = [...host.cells, ...memoryOnly].sort((a, b) => a.id - b.id);
  return { host, cells, memory, isolated, offline, caches, nics };
}

/** Output of `plumbline topology -o json`: docs/schemas/topology.json. */
export function topologyData({ host, cells, memory, isolated, offline, caches, nics }: Machine) {
  const groupsOf = (groups: ReturnType<typeof groupCpus>) =>
    groups.map(({ id, cpus }) => ({ id, cpus: numbersOf(cpus) }));
  const listed = (set: CpuSet) => [...set];
  return {
    cpus: listed(host.online),
    offline: listed(offline),
    threadsPerCore: host.threadsPerCore,
    uneven: unevenCore(host) !== undefined,
    numaNodes: cells.map(({ id, cpus: set }) => {
      const cellMemory = memory.cells.find((cell) => cell.id === id);
      return {
        id,
        cpus: listed(set),
        memory: cellMemory?.memory ?? null,
        hugePages: { ...cellMemory?.hugePages },
        distances: [...(memory.distances?.[String(id)] ?? [])],
      };
    }),
    sockets: groupsOf(groupCpus(host.cpus, ({ socket }) => socket)),
    cores: host.cores.map(listed),
    uncores: groupsOf(groupCpus(host.cpus, ({ uncore }) => uncore)),
    isolated: listed(isolated),
    caches: caches.map(({ level, type, size = null, cpus: set }) => ({ level, type, size, cpus: listed(set) })),
    nics: nics.map(({ name, cells, pci = null, driver = null, up = null, speed = null, virtualFunctions }) => {
      return { name, numaNodes: cells, pci, driver, up, speed, virtualFunctions };
    }),
  };
}
