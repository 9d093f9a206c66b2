import { CpuSet } from '../../model/cpu-set.ts';
import type { ShapeContent } from './wire.ts';

export type Shape = ReturnType<typeof shapeOf>;
export type ShapeCell = Shape['cells'][number];

export function shapeOf(content: ShapeContent) {
  const siblings = content.cores.map((core) => CpuSet.parse(core).toArray());
  const slots: { readonly cpu: number; readonly core: number }[] = [];
  /** The slots of a core's threads are `first` and the following ones. */
  const cores: { readonly first: number; readonly threads: number }[] = [];
  const networks = content.physnets.map(([name, list]) => ({ name, cells: CpuSet.parse(list) }));
  const tunnel = CpuSet.parse(content.tunnel ?? '');
  const cells = [...content.cells]
    .sort(([a], [b]) => a - b)
    .map(([id, list]) => {
      const members = CpuSet.parse(list);
      const cellCores = siblings.filter(([first]) => first !== undefined && members.has(first));
      cellCores.sort(([a = 0], [b = 0]) => a - b);
      const firstCore = cores.length;
      for (const threads of cellCores) {
        cores.push({ first: slots.length, threads: threads.length });
        for (const cpu of threads) slots.push({ cpu, core: cores.length - 1 });
      }
      const physnets = networks.filter((network) => network.cells.has(id)).map(({ name }) => name);
      /** `cores` is their number; their indexes follow `firstCore`. */
      return { id, firstCore, cores: cellCores.length, physnets, tunnel: tunnel.has(id) };
    });
  const slotOf = new Map(slots.map(({ cpu }, slot) => [cpu, slot]));
  const slotsIn = (list = '') => [...CpuSet.parse(list)].flatMap((cpu) => slotOf.get(cpu) ?? []);
  return {
    content,
    cells,
    cores,
    slots,
    slotOf,
    reserved: slotsIn(content.reserved),
    polled: slotsIn(content.polled),
    placeless: networks.filter((network) => network.cells.isEmpty).map(({ name }) => name),
  };
}

export function cellsOf({ cells, slots }: Shape, usedSlots: Iterable<number>): ShapeCell[] {
  const cores = [...usedSlots].map((slot) => slots[slot]!.core);
  return cells.filter(({ firstCore, cores: count }) =>
    cores.some((core) => core >= firstCore && core < firstCore + count),
  );
}

export const numberText = (value: number): string => value.toLocaleString('en');

/** `1 node`, `3,000 nodes`. */
export const countWords = (count: number, noun: string): string =>
  `${numberText(count)} ${noun}${count === 1 ? '' : 's'}`;

export const attentionText = (count: number): string =>
  `${numberText(count)} ${count === 1 ? 'needs' : 'need'} attention`;
