import type { CpuSet } from '../cpu-set.ts';
import type { Host } from '../host.ts';

const MAX_CELLS = 32;

/**
 * Bit positions of a host's CPUs, ordered by cell, then by thread of the core. Bit c of the word of thread t is thread
 * t of the c-th core. Each cell starts at a new word, so the whole free cores of a cell are the AND of the words of its
 * threads.
 */
export interface CoreLayout {
  readonly cells: number;
  /** Number of threads of the largest core. */
  readonly threads: number;
  /** Number of words for one thread of one cell. */
  readonly span: number;
  /** Number of words for the host. */
  readonly words: number;
  /** Bit position by CPU id; -1 for an id that the host lacks. */
  readonly bits: Int32Array;
  /** Number of CPUs of the largest cell. */
  readonly largestCell: number;
}

const layouts = new WeakMap<Host, CoreLayout>();

/**
 * Computes the layout of a host, once for each host.
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

/** Number of values that `writeRoom` writes for each cell. */
export const NUMBERS_OF_CELL = 2;

let scratch = new Uint32Array(16);

/** Writes for each cell the number of free CPUs in whole free cores and the number of all free CPUs. */
export function writeRoom(layout: CoreLayout, into: Uint16Array, start: number, free: CpuSet): void {
  const { bits, words, cells, threads, span } = layout;
  if (words > scratch.length) scratch = new Uint32Array(words * 2);
  scratch.fill(0, 0, words);
  for (const cpu of free) {
    const bit = bits[cpu] ?? -1;
    if (bit >= 0) scratch[bit >>> 5]! |= 1 << (bit & 31);
  }
  for (let cell = 0; cell < cells; cell++) {
    let [whole, all] = [0, 0];
    for (let word = 0; word < span; word++) {
      const at = cell * threads * span + word;
      let core = scratch[at]!;
      for (let thread = 0; thread < threads; thread++) {
        core &= scratch[at + thread * span]!;
        all += popCount(scratch[at + thread * span]!);
      }
      whole += popCount(core) * threads;
    }
    into[start + cell * NUMBERS_OF_CELL] = whole;
    into[start + cell * NUMBERS_OF_CELL + 1] = all;
  }
}

function popCount(word: number): number {
  let n = word - ((word >>> 1) & 0x55555555);
  n = (n & 0x33333333) + ((n >>> 2) & 0x33333333);
  return Math.imul((n + (n >>> 4)) & 0x0f0f0f0f, 0x01010101) >>> 24;
}
