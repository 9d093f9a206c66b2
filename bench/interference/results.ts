import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { root } from '../../test/support/bundles.ts';
import type { Figures } from './figures.ts';

/** Ways to treat Open vSwitch when a VM gets CPUs of its own. */
export const CONTENDERS = ['apart', 'unmanaged', 'loop', 'plumbline'] as const;
export type Contender = (typeof CONTENDERS)[number];

export const TITLES: Readonly<Record<Contender, string>> = {
  apart: 'always on other CPUs',
  unmanaged: 'unmanaged',
  loop: 'loop, every second',
  plumbline: 'Plumbline',
};

/** The recorded figures, from the root of the repository. */
export const RESULTS = 'bench/interference/results.json';

export interface Results {
  /** Starts of a VM that each contender was measured in. */
  readonly starts: number;
  /** Processors of the machine, and its load average of one minute when the run began. */
  readonly processors: number;
  readonly load: number;
  readonly figures: Readonly<Record<Contender, Figures>>;
}

/** @throws Error if nothing has been recorded */
export function readResults(): Results {
  const results = JSON.parse(readFileSync(join(root, RESULTS), 'utf8')) as Results;
  const absent = CONTENDERS.filter((one) => results.figures[one] === undefined);
  if (absent.length > 0) throw new Error(`${RESULTS} lacks ${absent.join(', ')}; record it again`);
  return results;
}

/** More digits than four mean nothing here. */
const rounded = (_key: string, value: unknown) => (typeof value === 'number' ? Number(value.toPrecision(4)) : value);

export function writeResults(results: Results): void {
  writeFileSync(join(root, RESULTS), `${JSON.stringify(results, rounded, 2)}\n`);
}
