import { COLOUR_COUNT, cpuSlots, type NodeItem, Paint } from '../data/node.ts';
import type { Shape, ShapeCell } from '../data/shape.ts';
import { status } from '../state/state.ts';

interface CpuMapProps {
  readonly node: NodeItem;
  readonly shape: Shape;
  /** Slots where Open vSwitch may run. */
  readonly switched?: ReadonlySet<number> | undefined;
  /** Slots that are not in the background; undefined: all. */
  readonly lookedAt?: ReadonlySet<number> | undefined;
}

/** The table below has everything as text, so the drawing is hidden from screen readers. */
export function CpuMap({ cells, ...props }: CpuMapProps & { readonly cells?: readonly ShapeCell[] }) {
  return (
    <div class="cpu-map">
      {(cells ?? props.shape.cells).map((cell) => (
        <Cell key={cell.id} cell={cell} {...props} />
      ))}
    </div>
  );
}

const isSilent = ({ problems }: Pick<NodeItem, 'problems'>): boolean => problems.includes('silent');

const DPU_WORD = { '': '', alive: 'ready', dead: 'not ready', unknown: 'unknown' } as const;

function Cell({ cell, ...props }: CpuMapProps & { readonly cell: ShapeCell }) {
  const { node, shape } = props;
  const cores = Array.from({ length: cell.cores }, (_, k) => cell.firstCore + k);
  const free = cores.filter((core) => isFree(core, node, shape)).length;
  return (
    <section class="cpu-cell" aria-label={`NUMA node ${cell.id}`}>
      <header>
        <h3>NUMA node {cell.id}</h3>
        <span class="free">
          {free} of {cell.cores} cores free{isSilent(node) && ' by its last report'}
        </span>
        {cell.physnets.map((name) => (
          <span key={name} class="badge is-network">
            {name}
          </span>
        ))}
        {cell.tunnel && <span class="badge is-network">tunnel</span>}
        {node.dpu !== '' && (
          <span class={node.dpu === 'alive' ? 'badge is-good' : 'badge is-bad'}>DPU {DPU_WORD[node.dpu]}</span>
        )}
      </header>
      <div class="cores" aria-hidden="true">
        {cores.map((core) => (
          <Core key={core} core={core} {...props} />
        ))}
      </div>
    </section>
  );
}

function Core({ core, node, shape, switched, lookedAt }: CpuMapProps & { readonly core: number }) {
  const { first, threads } = shape.cores[core]!;
  return (
    <div class="core">
      {Array.from({ length: threads }, (_, k) => first + k).map((slot) => {
        const paint = node.paint[slot] ?? Paint.free;
        const padded = node.padding[slot] === 1;
        const hasSwitch = switched?.has(slot) === true;
        const isBack = lookedAt?.has(slot) === false;
        const { cpu } = shape.slots[slot]!;
        const looks = [padded && 'is-padding', hasSwitch && 'has-switch', isBack && 'is-back'];
        const title = titleOf(node, paint, cpu, padded) + (hasSwitch ? '; Open vSwitch may run here' : '');
        return (
          <span key={slot} class={['thread', paintName(node, paint), ...looks].filter(Boolean).join(' ')} title={title}>
            <b>{markOf(node, paint)}</b>
            <i>{cpu}</i>
          </span>
        );
      })}
    </div>
  );
}

function titleOf({ owners }: NodeItem, paint: number, cpu: number, padded: boolean): string {
  const names = ['free', 'reserved for the system', 'Open vSwitch polls here', 'reserved for a starting pod'];
  const owner = names[paint] ?? owners[paint - Paint.owner]?.[0] ?? '';
  return `CPU ${cpu}: ${owner}${padded ? ' (added for whole cores)' : ''}`;
}

function isFree(core: number, { paint }: NodeItem, { cores }: Shape): boolean {
  const { first, threads } = cores[core]!;
  return paint.subarray(first, first + threads).every((value) => value === Paint.free);
}

const FIXED = ['free', 'reserved', 'polled', 'held'] as const;

export function paintName({ marks }: Pick<NodeItem, 'marks'>, paint: number): string {
  return `p-${FIXED[paint] ?? `vm${(marks[paint - Paint.owner] ?? 0) % COLOUR_COUNT}`}`;
}

const SIGNS = ['', 'R', 'P', '→'] as const;

export function markOf({ owners }: Pick<NodeItem, 'owners'>, paint: number): string {
  const sign = SIGNS[paint];
  if (sign !== undefined) return sign;
  const letters = status.value?.letters ?? '';
  const pods = [...new Set(owners.map(([pod]) => pod))];
  const index = pods.indexOf(owners[paint - Paint.owner]?.[0] ?? '');
  return letters[index % letters.length] ?? '';
}

const FREE = 'free: the shared pool, where Open vSwitch may also run';
const FREE_BEFORE = 'free by the last report of its agent, which is silent';

const IN_FLIGHT = { nominated: 'nominated', bound: 'bound, about to start' } as const;

export function ownersOf(node: NodeItem, shape: Shape) {
  const { owners, inFlight, paint, padding } = node;
  const row = (kind: number, who: string, about: string, slots: readonly number[]) => {
    return { paint: kind, who, about, slots, padded: slots.filter((slot) => padding[slot] === 1) };
  };
  const painted = (kind: number) => [...paint.keys()].filter((slot) => paint[slot] === kind);
  const rows = [
    ...owners.map(([pod, container, cpus], index) =>
      row(Paint.owner + index, pod, container === 'compute' ? '' : container, cpuSlots(shape, cpus)),
    ),
    ...inFlight.map(([pod, kind, cpus]) => {
      const about = cpus === '' ? `${IN_FLIGHT[kind]}; its CPUs cannot be predicted` : IN_FLIGHT[kind];
      return { ...row(Paint.inFlight, pod, about, cpuSlots(shape, cpus)), padded: [] };
    }),
    row(Paint.polled, 'Open vSwitch', 'poll mode drivers', painted(Paint.polled)),
    row(Paint.reserved, 'the system', 'reserved', painted(Paint.reserved)),
    row(Paint.free, 'no owner', isSilent(node) ? FREE_BEFORE : FREE, painted(Paint.free)),
  ];
  return rows.filter(({ paint: kind, slots }) => slots.length > 0 || kind === Paint.inFlight);
}
