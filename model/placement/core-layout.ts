import type { CpuSet } from '../cpu-set.ts';
import type { Host } from '../host.ts';

const MAX_CELLS = 32;

/**
 * Where the bits of a host's CPUs stand: ordered by cell, then by thread of the core. Bit c of the word of thread t is
 * thread t of the c-th core, and each cell starts on a word of its own, so the whole free cores of a cell are the AND of
 * its threads' words.
 */
export interface CoreLayout {
  readonly cells: number;
  /** Threads of the largest core. */
  readonly threads: number;
  /** Words of one thread of one cell. */
  readonly span: number;
  /** Words of the whole host. */
  readonly words: number;
  /** Bit position by CPU; -1 for an id that the host has not. */
  readonly bits: Int32Array;
  /** CPUs of the largest cell. */
  readonly largestCell: number;
}

const layouts = new WeakMap<Host, CoreLayout>();

/**
 * The layout of a host, made once for each host.
 * @throws RangeError if it has more than 32 NUMA nodes
 */
export function layoutOf(host: Host): CoreLayout {
  const known = layouts.get(host) ?? makeLayout(host);
  layouts.set(host, known);
  return known;
}

function makeLayout(host: Host): CoreLayout {
  const cells = host.cells.length;
  if (cells > MAX_CELLS) throw new RangeError(`${cells} NUMA nodes: at most ${MAX_CELLS}`);
  const threads = Math.max(1, ...host.cores.map((core) => core.size));
  const coresOfCell = host.cells.map((cell) => host.cores.filter((core) => cell.cpus.intersects(core)));
  const span = Math.max(1, ...coresOfCell.map((cores) => Math.ceil(cores.length / 32)));
  const bits = new Int32Array((host.cpus.at(-1)?.id ?? -1) + 1).fill(-1);
  coresOfCell.forEach((cores, cell) => {
    cores.forEach((core, position) => {
      [...core].forEach((cpu, thread) => {
        bits[cpu] = ((cell * threads + thread) * span + (position >>> 5)) * 32 + (position & 31);
      });
    });
  });
  const largestCell = Math.max(0, ...host.cells.map(({ cpus }) => cpus.size));
  return Object.freeze({ cells, threads, span, words: cells * threads * span, bits, largestCell });
}

/** Sets the bits of CPUs in a host's words, and clears all others. */
export function writeFree({ bits, words }: CoreLayout, into: Uint32Array, start: number, free: CpuSet): void {
  into.fill(0, start, start + words);
  for (const cpu of free) {
    const bit = bits[cpu] ?? -1;
    if (bit >= 0) into[start + (bit >>> 5)]! |= 1 << (bit & 31);
  }
}

/** CPUs of whole cores in one word of a cell: `at` is the word of the cell's first thread. */
export function wholeIn(words: Uint32Array, at: number, threads: number, span: number): number {
  let whole = words[at]!;
  for (let thread = 1; thread < threads; thread++) whole &= words[at + thread * span]!;
  return popCount(whole) * threads;
}

export function freeIn(words: Uint32Array, at: number, threads: number, span: number): number {
  let free = 0;
  for (let thread = 0; thread < threads; thread++) free += popCount(words[at + thread * span]!);
  return free;
}

function popCount(word: number): number {
  let n = word - ((word >>> 1) & 0x55555555);
  n = (n & 0x33333333) + ((n >>> 2) & 0x33333333);
  return Math.imul((n + (n >>> 4)) & 0x0f0f0f0f, 0x01010101) >>> 24;
}
