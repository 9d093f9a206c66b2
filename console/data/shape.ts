import type { ShapeContent } from './wire.ts';

/** The CPUs of a list such as `0-3,8`, in its order. Ignores anything that is not a number. */
export function parseCpus(list: string): number[] {
  const cpus: number[] = [];
  if (list === '') return cpus;
  for (const part of list.split(',')) {
    const dash = part.indexOf('-');
    const first = Number(dash < 0 ? part : part.slice(0, dash));
    const last = dash < 0 ? first : Number(part.slice(dash + 1));
    for (let cpu = first; cpu <= last; cpu++) cpus.push(cpu);
  }
  return cpus;
}

/** The shortest list of some CPUs: `0-3,8`. */
export function formatCpus(cpus: Iterable<number>): string {
  const sorted = [...cpus].sort((a, b) => a - b);
  const parts: string[] = [];
  for (let at = 0; at < sorted.length; ) {
    let end = at;
    while (sorted[end + 1] === sorted[end]! + 1) end++;
    parts.push(at === end ? String(sorted[at]) : `${sorted[at]}-${sorted[end]}`);
    at = end + 1;
  }
  return parts.join(',');
}

/** One thread of a core, and its index among all threads of a node. */
interface Slot {
  readonly cpu: number;
  /** Index of its core among all cores. */
  readonly core: number;
}

interface ShapeCore {
  /** Slots of its threads: `first` and the following ones. */
  readonly first: number;
  readonly threads: number;
}

export interface ShapeCell {
  readonly id: number;
  /** Indexes of its cores, from `firstCore`. */
  readonly firstCore: number;
  readonly cores: number;
  /** Names of the physnets on this NUMA node, and whether the tunnel endpoint is there. */
  readonly physnets: readonly string[];
  readonly tunnel: boolean;
}

/** The hardware of a node, with its threads in one row: NUMA node by NUMA node, core by core. */
export interface Shape {
  readonly content: ShapeContent;
  readonly cells: readonly ShapeCell[];
  readonly cores: readonly ShapeCore[];
  readonly slots: readonly Slot[];
  readonly slotOf: ReadonlyMap<number, number>;
  readonly reserved: readonly number[];
  readonly polled: readonly number[];
  /** Networks whose NUMA node is unknown. */
  readonly placeless: readonly string[];
}

export function shapeOf(content: ShapeContent): Shape {
  const siblings = content.cores.map(parseCpus);
  const slots: Slot[] = [];
  const cores: ShapeCore[] = [];
  const networks = content.physnets.map(([name, cells]) => ({ name, cells: parseCpus(cells) }));
  const tunnel = parseCpus(content.tunnel ?? '');
  const cells = [...content.cells]
    .sort(([a], [b]) => a - b)
    .map(([id, list]): ShapeCell => {
      const members = new Set(parseCpus(list));
      const own = siblings.filter(([first]) => first !== undefined && members.has(first));
      own.sort(([a = 0], [b = 0]) => a - b);
      const firstCore = cores.length;
      for (const threads of own) {
        cores.push({ first: slots.length, threads: threads.length });
        for (const cpu of threads) slots.push({ cpu, core: cores.length - 1 });
      }
      const physnets = networks.filter((one) => one.cells.includes(id)).map(({ name }) => name);
      return { id, firstCore, cores: own.length, physnets, tunnel: tunnel.includes(id) };
    });
  const slotOf = new Map(slots.map(({ cpu }, slot) => [cpu, slot]));
  const known = (list: string | undefined) =>
    parseCpus(list ?? '').flatMap((cpu) => {
      const slot = slotOf.get(cpu);
      return slot === undefined ? [] : [slot];
    });
  return {
    content,
    cells,
    cores,
    slots,
    slotOf,
    reserved: known(content.reserved),
    polled: known(content.polled),
    placeless: networks.filter((one) => one.cells.length === 0).map(({ name }) => name),
  };
}
