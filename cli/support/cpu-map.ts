import type { CpuSet } from '../../model/cpu-set.ts';
import type { Host } from '../../model/host.ts';
import { joinParts, type Line, paint, type Style } from './terminal.ts';

export interface CpuOwner {
  readonly mark: string;
  readonly label: string;
  readonly cpus: CpuSet;
  readonly style?: Style;
}

interface CpuMapOptions {
  readonly host: Host;
  readonly owners: readonly CpuOwner[];
  readonly cellLabels?: ReadonlyMap<number, string>;
  readonly width?: number;
}

const FREE = '·';
/** Cores in one line; a NUMA node with more continues on the next. */
const CORES_PER_LINE = 12;

/** A block for each NUMA node, cores side by side, threads by number and owner. Readable without colour. */
export function drawCpuMap(options: CpuMapOptions): Line[] {
  const { host, owners, cellLabels = new Map(), width = Number.POSITIVE_INFINITY } = options;
  const ownerOf = (cpu: number) => owners.find(({ cpus }) => cpus.has(cpu));
  const digits = String(host.cpus.at(-1)?.id ?? 0).length;
  const coreWidth = Math.max(...host.cores.map((core) => core.size)) * (digits + 1) + 3;
  const coresALine = Math.max(1, Math.min(CORES_PER_LINE, Math.floor(width / coreWidth)));

  const lines = host.cells.flatMap(({ id, cpus }): Line[] => {
    const cores = host.cores.filter((core) => core.intersects(cpus));
    const label = cellLabels.get(id);
    const rows = chunk(cores, coresALine).flatMap((row): Line[] => {
      const cells = (draw: (cpu: number) => Line) =>
        joinParts(
          row.map((core) => joinParts(core.toArray().map(draw), ' ')),
          '  │ ',
        );
      const numbers = ['  ', ...cells((cpu) => String(cpu).padStart(digits))];
      if (owners.length === 0) return [numbers];
      const mark = (owner: CpuOwner | undefined) => [paint(owner?.style, (owner?.mark ?? FREE).padStart(digits))];
      return [numbers, ['  ', ...cells((cpu) => mark(ownerOf(cpu)))]];
    });
    return [`NUMA node ${id}${label === undefined ? '' : `  (${label})`}`, ...rows];
  });
  if (owners.length === 0) return lines;
  const legend = owners
    .filter(({ cpus }) => !cpus.isEmpty)
    .map(({ mark, label, style }) => [paint(style, mark), ` ${label}`]);
  return [...lines, joinParts([...legend, `${FREE} free`], '   ')];
}

export function chunk<T>(list: readonly T[], size: number): T[][] {
  return Array.from({ length: Math.ceil(list.length / size) }, (_, i) => list.slice(i * size, (i + 1) * size));
}
