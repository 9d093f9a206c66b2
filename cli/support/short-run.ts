import { setFlagsFromString } from 'node:v8';

/**
 * Bytes of bytecode after which V8 optimizes a function; its default is 67,584. A command over a thousand nodes exceeds
 * the default in dozens of functions, and ends before their optimized code has saved what its compilation takes: a fifth
 * of the processor time of the command. With 150 times as much, only loops over tens of thousands of nodes exceed it.
 */
const BUDGET = 10_000_000;

/**
 * Tunes V8 for a process that ends within a second or so and reads some megabytes. V8 reads both flags whenever it
 * decides, so they may change while the process runs, and a version without one of them ignores it.
 */
export function expectShortRun(): void {
  setFlagsFromString(`--interrupt-budget=${BUDGET}`);
  // Marking in steps next to the work avoids pauses, which no one notices here, and costs more than one pass at once.
  setFlagsFromString('--no-incremental-marking');
}
