import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { root } from '../../test/support/bundles.ts';
import { writeBetween } from '../support/write-between.ts';
import { interferenceChart } from './chart.ts';
import { CONTENDERS, TITLES } from './contenders.ts';
import { SECONDS } from './measure.ts';
import { type Results, readResults } from './results.ts';

const PAGE = 'docs/reference/outcome.md';
const CHART = 'docs/reference/interference.svg';
const COMMAND = 'npx tsx bench/interference/run.ts --record';

/** Writes the table into the page, and the chart next to it. */
export function writeInterference(): void {
  const results = readResults();
  writeBetween(join(root, PAGE), COMMAND, interferenceTable(results));
  writeFileSync(join(root, CHART), interferenceChart(results));
}

const micros = (value: number) =>
  value < 1000 ? `${Number(value.toPrecision(2))} µs` : `${(value / 1000).toFixed(1)} ms`;

/** A row for each contender. */
export function interferenceTable({ starts, processors, load, figures }: Results): string {
  const rows = CONTENDERS.map((one) => {
    const { stolen, p99, p999, max } = figures[one];
    return `| ${TITLES[one]} | ${(stolen * 100).toFixed(2)} % | ${[p99, p999, max].map(micros).join(' | ')} |`;
  });
  return [
    `Each row: ${starts} starts of a VM, measured for ${SECONDS} s each; ${processors} processors, load average ${load.toFixed(1)}.`,
    '',
    '| Open vSwitch | stolen time | p99 | p99.9 | longest |',
    '|-|-:|-:|-:|-:|',
    ...rows,
  ].join('\n');
}
