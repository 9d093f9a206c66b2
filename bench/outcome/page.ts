import { writeFileSync } from 'node:fs';
import { cpus } from 'node:os';
import { join } from 'node:path';
import { root } from '../../test/support/bundles.ts';
import { writeBetween } from '../support/write-between.ts';
import { outcomeChart } from './chart.ts';
import { CONTENDERS, TITLES } from './contenders.ts';
import { FLEETS } from './fleets.ts';
import type { Figures } from './history.ts';
import { fillsFleet, type Result, readResults } from './results.ts';

const PAGE = 'docs/reference/outcome.md';
const CHART = 'docs/reference/outcome.svg';
const COMMAND = 'npx tsx bench/outcome/run.ts --record';

/** Writes the tables into the page, and the chart next to it. */
export function writeOutcome(): void {
  const results = readResults();
  writeBetween(join(root, 'README.md'), COMMAND, headlineTable(results));
  const machine = `${cpus().length} cores, Node.js ${process.versions.node}`;
  writeBetween(join(root, PAGE), COMMAND, outcomeTables(results, machine));
  writeFileSync(join(root, CHART), outcomeChart(results));
}

interface Column {
  readonly title: string;
  readonly shown: (figures: Figures) => string;
  /** Only meaningful if the fleet was filled. */
  readonly ofFull?: boolean;
}

const percent = (share: number | null) => (share === null ? '–' : `${(share * 100).toFixed(0)} %`);
const percentage = (share: number | null) => (share === null ? '–' : (share * 100).toFixed(0));
const seconds = (value: number | null) => (value === null ? 'never' : value.toFixed(1));

const COLUMNS: readonly Column[] = [
  { title: 'rejections', shown: ({ rejections }) => rejections.toFixed(0) },
  { title: 'in 10 s, %', shown: ({ soon }) => percentage(soon) },
  { title: 'p50, s', shown: ({ p50 }) => seconds(p50) },
  { title: 'p99, s', shown: ({ p99 }) => seconds(p99) },
  { title: 'before first', shown: ({ beforeFirst }) => `${beforeFirst ?? 'all'}`, ofFull: true },
  { title: 'at end', shown: ({ atEnd }) => `${atEnd}` },
  { title: 'near network, %', shown: ({ near }) => percentage(near) },
  { title: 'idle cores, %', shown: ({ idleCores }) => idleCores.toFixed(0), ofFull: true },
  { title: 'control plane, s', shown: ({ processor }) => processor.toFixed(0) },
];

/** A row for each fleet, in the order of the fleets; a cell has the figures of all contenders, in their order. */
export function outcomeTables(results: readonly Result[], machine: string): string {
  const fleets = FLEETS.filter(({ name }) => results.some(({ fleet }) => fleet === name));
  const rows = fleets.map((fleet) => {
    const ours = CONTENDERS.map((one) => results.find((r) => r.fleet === fleet.name && r.contender === one));
    const [first] = ours.filter((result) => result !== undefined) as [Result];
    const isFull = fillsFleet(first);
    const cells = COLUMNS.map(({ shown, ofFull }) => {
      if (ofFull && !isFull) return '–';
      return ours.map((result) => (result === undefined ? '–' : shown(result.figures))).join(', ');
    });
    const vfs = first.vfs === undefined ? '' : `, ${first.vfs} with a VF`;
    return row(`\`${fleet.name}\`: ${first.figures.vms} VMs${vfs}`, ...cells);
  });
  const seeds = [...new Set(results.map(({ seed }) => seed))].join(', ');
  return [
    `Measured on a machine with ${machine}, shared with other work.`,
    `Seed ${seeds}; load average ${range(results.map(({ load }) => load))}. Each cell: ${CONTENDERS.map((one) => TITLES[one]).join('; ')}.`,
    '',
    row('fleet', ...COLUMNS.map(({ title }) => title)),
    `|-|${'-|'.repeat(COLUMNS.length)}`,
    ...rows,
  ].join('\n');
}

/** The fleet whose figures are in the README. */
const HEADLINE_FLEET = '50-smt-2-restricted';
const HEADLINE: readonly Column[] = [
  { title: 'launchers rejected, per 100 VMs', shown: ({ rejections }) => rejections.toFixed(0) },
  { title: 'VMs running within 10 s', shown: ({ soon }) => percent(soon) },
  { title: 'VMs near their network', shown: ({ near }) => percent(near) },
  { title: 'idle cores', shown: ({ idleCores }) => `${idleCores.toFixed(0)} %` },
];

/** The figures of HEADLINE_FLEET, one row for each contender. @throws Error if the fleet was not recorded */
export function headlineTable(results: readonly Result[]): string {
  const ours = CONTENDERS.flatMap(
    (one) => results.find(({ fleet, contender }) => fleet === HEADLINE_FLEET && contender === one) ?? [],
  );
  const [first] = ours;
  if (first === undefined) throw new Error(`${HEADLINE_FLEET} was not recorded: npx tsx bench/outcome/run.ts --record`);
  return [
    row(`${first.figures.vms} VMs on 50 nodes`, ...HEADLINE.map(({ title }) => title)),
    `|-|${'-:|'.repeat(HEADLINE.length)}`,
    ...ours.map(({ contender, figures }) => row(TITLES[contender], ...HEADLINE.map(({ shown }) => shown(figures)))),
  ].join('\n');
}

const range = (values: readonly number[]) => {
  const [least, most] = [Math.min(...values), Math.max(...values)].map((value) => value.toFixed(1));
  return least === most ? `${least}` : `${least} to ${most}`;
};
const row = (...cells: readonly string[]) => `| ${cells.join(' | ')} |`;
