import type { ShapeContent } from './wire.ts';

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

export type Shape = ReturnType<typeof shapeOf>;
export type ShapeCell = Shape['cells'][number];

export function shapeOf(content: ShapeContent) {
  const siblings = content.cores.map(parseCpus);
  const slots: { readonly cpu: number; readonly core: number }[] = [];
  /** The slots of a core's threads are `first` and the following ones. */
  const cores: { readonly first: number; readonly threads: number }[] = [];
  const networks = content.physnets.map(([name, list]) => ({ name, cells: parseCpus(list) }));
  const tunnel = parseCpus(content.tunnel ?? '');
  const cells = [...content.cells]
    .sort(([a], [b]) => a - b)
    .map(([id, list]) => {
      const members = new Set(parseCpus(list));
      const cellCores = siblings.filter(([first]) => first !== undefined && members.has(first));
      cellCores.sort(([a = 0], [b = 0]) => a - b);
      const firstCore = cores.length;
      for (const threads of cellCores) {
        cores.push({ first: slots.length, threads: threads.length });
        for (const cpu of threads) slots.push({ cpu, core: cores.length - 1 });
      }
      const physnets = networks.filter((network) => network.cells.includes(id)).map(({ name }) => name);
      /** `cores` is their number; their indexes follow `firstCore`. */
      return { id, firstCore, cores: cellCores.length, physnets, tunnel: tunnel.includes(id) };
    });
  const slotOf = new Map(slots.map(({ cpu }, slot) => [cpu, slot]));
  const slotsIn = (list = '') => parseCpus(list).flatMap((cpu) => slotOf.get(cpu) ?? []);
  return {
    content,
    cells,
    cores,
    slots,
    slotOf,
    reserved: slotsIn(content.reserved),
    polled: slotsIn(content.polled),
    placeless: networks.filter((network) => network.cells.length === 0).map(({ name }) => name),
  };
}

export function cellsOf({ cells, slots }: Shape, usedSlots: Iterable<number>): ShapeCell[] {
  const cores = [...usedSlots].map((slot) => slots[slot]!.core);
  return cells.filter(({ firstCore, cores: count }) =>
    cores.some((core) => core >= firstCore && core < firstCore + count),
  );
}

export const numberText = (value: number): string => value.toLocaleString('en');

/** `1 node`, `3 nodes`, as in the command. The page may import nothing outside console/. */
export const countWords = (count: number, noun: string): string =>
  `${numberText(count)} ${noun}${count === 1 ? '' : 's'}`;

export const attentionText = (count: number): string =>
  `${numberText(count)} ${count === 1 ? 'needs' : 'need'} attention`;
