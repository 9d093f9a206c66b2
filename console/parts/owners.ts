import { COLOURS, cpuSlots, type NodeItem, Paint } from '../data/node.ts';
import type { Shape } from '../data/shape.ts';

const FIXED = ['free', 'reserved', 'polled', 'held'] as const;

/** The style sheet's class of a thread's painting. */
export function paintName({ marks }: Pick<NodeItem, 'marks'>, paint: number): string {
  return `p-${FIXED[paint] ?? `vm${(marks[paint - Paint.owner] ?? 0) % COLOURS}`}`;
}

/** The letter of an owner, in addition to its colour. */
export function markOf({ marks }: Pick<NodeItem, 'marks'>, paint: number): string {
  if (paint === Paint.free) return '';
  if (paint === Paint.reserved) return 'R';
  if (paint === Paint.polled) return 'S';
  if (paint === Paint.inFlight) return '→';
  const index = marks[paint - Paint.owner] ?? 0;
  return String.fromCharCode((index % 52 < 26 ? 65 : 71) + (index % 52));
}

/** The owners of a node's CPUs, in the order of the report. `padded` are the slots that were added for whole cores. */
export function ownersOf({ owners, inFlight, paint, padding }: NodeItem, shape: Shape) {
  const row = (kind: number, who: string, about: string, slots: readonly number[]) => {
    return { paint: kind, who, about, slots, padded: slots.filter((slot) => padding[slot] === 1) };
  };
  const painted = (kind: number) => [...paint.keys()].filter((slot) => paint[slot] === kind);
  const states = { nominated: 'nominated', bound: 'bound, about to start' } as const;
  const rows = [
    ...owners.map(([pod, container, cpus], index) =>
      row(Paint.owner + index, pod, container === 'compute' ? '' : container, cpuSlots(shape, cpus)),
    ),
    ...inFlight.map(([pod, kind, cpus]) => {
      const about = cpus === '' ? `${states[kind]}; its CPUs cannot be predicted` : states[kind];
      return { ...row(Paint.inFlight, pod, about, cpuSlots(shape, cpus)), padded: [] };
    }),
    row(Paint.polled, 'Open vSwitch', 'poll mode drivers', painted(Paint.polled)),
    row(Paint.reserved, 'the system', 'reserved', painted(Paint.reserved)),
    row(Paint.free, 'no owner', 'free: the shared pool, where Open vSwitch may also run', painted(Paint.free)),
  ];
  return rows.filter(({ paint: kind, slots }) => slots.length > 0 || kind === Paint.inFlight);
}
