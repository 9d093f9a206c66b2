import { useMemo } from 'preact/hooks';
import { type NodeItem, Paint } from '../data/node.ts';
import type { Shape } from '../data/shape.ts';
import { paintName } from './owners.ts';

/** A thread is a square of 1, less the gap. */
const SIDE = 0.84;
const CELL_GAP = 1.2;
const LINE_GAP = 0.35;
/** Lines of a NUMA node's block: as many as are not too tall. */
const LINES = [6, 5, 4, 3, 2];
/** Pixels that a map may take, and that a thread takes at the most. */
const MOST = { width: 330, height: 42, thread: 8 };

interface Layout {
  readonly width: number;
  readonly height: number;
  /** Pixels of a thread. */
  readonly scale: number;
  /** By slot. */
  readonly x: Float32Array;
  readonly y: Float32Array;
}

const layouts = new WeakMap<Shape, Layout>();

function layoutOf(shape: Shape): Layout {
  const known = layouts.get(shape);
  if (known) return known;
  const widest = shape.cells.reduce((most, { cores }) => Math.max(most, cores), 1);
  const all = LINES.map((lines) => arranged(shape, Math.ceil(widest / lines)));
  const layout = all.find(({ height, scale }) => height * scale <= MOST.height) ?? arranged(shape, widest);
  layouts.set(shape, layout);
  return layout;
}

/** NUMA nodes side by side, their cores in lines, a core's threads one below the other. */
function arranged(shape: Shape, line: number): Layout {
  const x = new Float32Array(shape.slots.length);
  const y = new Float32Array(shape.slots.length);
  const tall = shape.cores.reduce((most, { threads }) => Math.max(most, threads), 1);
  let left = 0;
  let height = 1;
  for (const { firstCore, cores } of shape.cells) {
    for (let core = 0; core < cores; core++) {
      const { first, threads } = shape.cores[firstCore + core]!;
      const top = Math.floor(core / line) * (tall + LINE_GAP);
      for (let thread = 0; thread < threads; thread++) {
        x[first + thread] = left + (core % line);
        y[first + thread] = top + thread;
      }
      height = Math.max(height, top + tall);
    }
    left += Math.min(cores, line) + CELL_GAP;
  }
  const width = Math.max(1, left - CELL_GAP);
  return { width, height, scale: Math.min(MOST.thread, MOST.width / width), x, y };
}

/** A node's CPUs in a line: one path for each owner, so that a row costs a handful of elements at any size. */
export function MiniMap({ node }: { readonly node: NodeItem }) {
  const { shape } = node;
  const drawn = useMemo(() => (shape ? pathsOf(node, shape) : undefined), [node]);
  if (shape === undefined || drawn === undefined) return <span class="no-map">no report</span>;
  const { width, height, scale } = layoutOf(shape);
  return (
    <svg
      class="mini"
      viewBox={`0 0 ${width} ${height}`}
      width={width * scale}
      height={height * scale}
      role="img"
      aria-label={summaryOf(node, shape)}
    >
      {drawn.map(([name, path]) => (
        <path key={name} class={name} d={path} />
      ))}
    </svg>
  );
}

function pathsOf({ paint, padding }: NodeItem, shape: Shape): [string, string][] {
  const { x, y } = layoutOf(shape);
  const paths = new Map<string, string>();
  const add = (name: string, piece: string) => paths.set(name, (paths.get(name) ?? '') + piece);
  for (let slot = 0; slot < paint.length; slot++) {
    const [left, top] = [x[slot]!, y[slot]!];
    add(paintName(paint[slot]!), `M${fixed(left)} ${fixed(top)}h${SIDE}v${SIDE}h-${SIDE}z`);
    if (padding[slot] === 1) add('hatch', `M${fixed(left)} ${fixed(top + SIDE)}l${SIDE}-${SIDE}`);
  }
  const hatch = paths.get('hatch');
  paths.delete('hatch');
  return [...paths, ...(hatch === undefined ? [] : [['hatch', hatch] as [string, string]])];
}

function fixed(value: number): string {
  return String(Math.round(value * 100) / 100);
}

function summaryOf({ paint, freeCores, pods }: NodeItem, { cells, cores, slots }: Shape): string {
  const count = (kind: number) => paint.reduce((sum, one) => sum + Number(one === kind), 0);
  const parts = [
    `${cells.length} NUMA nodes, ${cores.length} cores, ${slots.length} CPUs`,
    `${freeCores} whole cores free`,
    `${count(Paint.reserved)} CPUs reserved`,
    ...(count(Paint.polled) > 0 ? [`${count(Paint.polled)} polled by Open vSwitch`] : []),
    `${pods} pods with CPUs of their own`,
  ];
  return parts.join(', ');
}
