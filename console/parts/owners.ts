import { COLOURS, type NodeItem, Paint, slotsOf } from '../data/node.ts';
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

/** The owners of a node's CPUs, in the order of the report. */
export interface OwnerRow {
  readonly paint: number;
  readonly who: string;
  readonly about: string;
  readonly slots: readonly number[];
  /** Of these, the CPUs that were added for whole cores. */
  readonly padded: readonly number[];
}

export function ownersOf(node: NodeItem, shape: Shape): OwnerRow[] {
  const { owners, inFlight: held, paint, padding } = node;
  const painted = (kind: number) => [...paint.keys()].filter((slot) => paint[slot] === kind);
  const inFlight = { nominated: 'nominated', bound: 'bound, about to start' } as const;
  const rows: OwnerRow[] = [
    ...owners.map(([pod, container, cpus], index): OwnerRow => {
      const slots = slotsOf(shape, cpus);
      const padded = slots.filter((slot) => padding[slot] === 1);
      return { paint: Paint.owner + index, who: pod, about: container === 'compute' ? '' : container, slots, padded };
    }),
    ...held.map(
      ([pod, kind, cpus]): OwnerRow => ({
        paint: Paint.inFlight,
        who: pod,
        about: cpus === '' ? `${inFlight[kind]}; its CPUs are not predicted` : inFlight[kind],
        slots: slotsOf(shape, cpus),
        padded: [],
      }),
    ),
    {
      paint: Paint.polled,
      who: 'Open vSwitch',
      about: 'poll mode drivers',
      slots: painted(Paint.polled),
      padded: [],
    },
    { paint: Paint.reserved, who: 'the system', about: 'reserved', slots: painted(Paint.reserved), padded: [] },
    {
      paint: Paint.free,
      who: 'no owner',
      about: 'free: the shared pool, where Open vSwitch may also run',
      slots: painted(Paint.free),
      padded: [],
    },
  ];
  return rows.filter(({ paint: kind, slots }) => slots.length > 0 || kind === Paint.inFlight);
}
