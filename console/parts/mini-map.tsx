import { useMemo } from 'preact/hooks';
import { type NodeItem, Paint } from '../data/node.ts';
import { countWords, type Shape } from '../data/shape.ts';
import { paintName } from './cpu-map.tsx';

/** Sides of a square and gaps, where a thread is one unit wide. */
const SIDE = 0.84;
const CELL_GAP = 1.2;
const LINE_GAP = 0.35;
const LINES = [6, 5, 4, 3, 2];
/** Largest height of a map, and largest size of a thread, in pixels. */
const MAX_PIXELS = { height: 42, thread: 8, wideThread: 13 };
export const MapWidth = { usual: 330, wide: 820 } as const;

type Layout = ReturnType<typeof arranged>;

function layoutOf(shape: Shape, most: number): Layout {
  const widest = shape.cells.reduce((most, { cores }) => Math.max(most, cores), 1);
  const all = LINES.map((lines) => arranged(shape, Math.ceil(widest / lines), most));
  const fitting = all.filter(({ height, scale }) => height * scale <= MAX_PIXELS.height);
  const few = arranged(shape, widest, most);
  // The largest squares that fit the given space, else as few columns as fit.
  return most === MapWidth.wide
    ? [...fitting, few].reduce((best, one) => (one.scale > best.scale ? one : best))
    : (fitting[0] ?? few);
}

/** NUMA nodes side by side, their cores in rows, the threads of a core below each other. */
function arranged(shape: Shape, line: number, most: number) {
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
  const tallest =
    most === MapWidth.wide ? Math.min(MAX_PIXELS.wideThread, MAX_PIXELS.height / height) : MAX_PIXELS.thread;
  return { width, height, scale: Math.min(tallest, most / width), x, y };
}

export function MiniMap({ node, width: most }: { readonly node: NodeItem; readonly width: number }) {
  const { shape } = node;
  const layout = useMemo(() => shape && layoutOf(shape, most), [shape, most]);
  const paths = useMemo(() => layout && pathsOf(node, layout), [node, layout]);
  if (shape === undefined || layout === undefined)
    return <span class="no-map">{node.problems.includes('no-report') ? 'no report' : '–'}</span>;
  const { width, height, scale } = layout;
  return (
    <svg
      class={node.silentSince === undefined ? 'mini' : 'mini is-old'}
      viewBox={`0 0 ${width} ${height}`}
      width={width * scale}
      height={height * scale}
      role="img"
      aria-label={summaryOf(node, shape)}
    >
      {paths?.map(([name, path]) => (
        <path key={name} class={name} d={path} />
      ))}
    </svg>
  );
}

function pathsOf(node: NodeItem, { x, y }: Layout): [string, string][] {
  const { paint, padding } = node;
  const paths = new Map<string, string>();
  let hatch = '';
  for (let slot = 0; slot < paint.length; slot++) {
    const left = x[slot]!;
    const top = y[slot]!;
    const name = paintName(node, paint[slot]!);
    paths.set(name, `${paths.get(name) ?? ''}M${fixed(left)} ${fixed(top)}h${SIDE}v${SIDE}h-${SIDE}z`);
    if (padding[slot] === 1) hatch += `M${fixed(left)} ${fixed(top + SIDE)}l${SIDE}-${SIDE}`;
  }
  return hatch === '' ? [...paths] : [...paths, ['hatch', hatch]];
}

function fixed(value: number): string {
  return String(Math.round(value * 100) / 100);
}

function summaryOf({ paint, freeCores, pods }: NodeItem, { cells, cores, slots }: Shape): string {
  const count = (kind: number) => paint.reduce((sum, one) => sum + Number(one === kind), 0);
  const parts = [
    `${countWords(cells.length, 'NUMA node')}, ${countWords(cores.length, 'core')}, ${countWords(slots.length, 'CPU')}`,
    `${countWords(freeCores, 'whole core')} free`,
    `${countWords(count(Paint.reserved), 'CPU')} reserved`,
    ...(count(Paint.polled) > 0 ? [`${count(Paint.polled)} polled by Open vSwitch`] : []),
    `${countWords(pods, 'pod')} with dedicated CPUs`,
  ];
  return parts.join(', ');
}
