import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { root } from '../../test/support/bundles.ts';
import type { Contender } from './contenders.ts';
import { FLEETS } from './fleets.ts';
import type { Figures } from './history.ts';
import { createStream } from './stream.ts';

/** The recorded results, relative to the root of the repository. */
export const RESULTS = 'bench/outcome/results.json';

export interface Result {
  readonly fleet: string;
  readonly contender: Contender;
  readonly seed: number;
  /** Number of VMs with a VF. Absent: measured before streams had any. */
  readonly vfs?: number;
  /** The machine's 1-minute load average at the start. */
  readonly load: number;
  readonly figures: Figures;
}

export function readResults(): Result[] {
  try {
    return JSON.parse(readFileSync(join(root, RESULTS), 'utf8')) as Result[];
  } catch {
    return [];
  }
}

/** Whether the stream had more VMs than the fleet has room for; false if --vms made it shorter. */
export function fillsFleet({ fleet: name, seed, figures }: Result): boolean {
  const fleet = FLEETS.find((one) => one.name === name);
  return fleet !== undefined && createStream({ seed, fleet }).vms.length === figures.vms;
}

/** Replaces the recorded result of the same fleet and contender, and results of the fleet with another stream. */
export function addResult(result: Result): void {
  const others = readResults().filter(
    ({ fleet, contender, vfs }) => fleet !== result.fleet || (contender !== result.contender && vfs === result.vfs),
  );
  writeFileSync(join(root, RESULTS), `${JSON.stringify([...others, result], rounded, 2)}\n`);
}

/** Six digits are enough. */
const rounded = (_key: string, value: unknown) => (typeof value === 'number' ? Number(value.toPrecision(6)) : value);
