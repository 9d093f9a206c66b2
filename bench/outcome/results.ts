import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { root } from '../../test/support/bundles.ts';
import type { Contender } from './contenders.ts';
import { FLEETS } from './fleets.ts';
import type { Figures } from './history.ts';
import { createStream } from './stream.ts';

/** What was measured, from the root of the repository. */
export const RESULTS = 'bench/outcome/results.json';

export interface Result {
  readonly fleet: string;
  readonly contender: Contender;
  readonly seed: number;
  /** The machine's load average of one minute when it began. */
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

/** Whether the stream had as many VMs as the fleet has room for, and more: not where --vms kept it shorter. */
export function fillsFleet({ fleet: name, seed, figures }: Result): boolean {
  const fleet = FLEETS.find((one) => one.name === name);
  return fleet !== undefined && createStream({ seed, fleet }).vms.length === figures.vms;
}

/** Replaces what was recorded of the same fleet and contender. */
export function addResult(result: Result): void {
  const others = readResults().filter(
    ({ fleet, contender }) => fleet !== result.fleet || contender !== result.contender,
  );
  writeFileSync(join(root, RESULTS), `${JSON.stringify([...others, result], rounded, 2)}\n`);
}

/** More digits than six mean nothing here. */
const rounded = (_key: string, value: unknown) => (typeof value === 'number' ? Number(value.toPrecision(6)) : value);
