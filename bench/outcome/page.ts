import { writeFileSync } from 'node:fs';
import { cpus } from 'node:os';
import { join } from 'node:path';
import { root } from '../../test/support/bundles.ts';
import { writeBetween } from '../support/write-between.ts';
import { CONTENDERS, type Contender, TITLES } from './contenders.ts';
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

interface Panel {
  readonly title: string;
  readonly value: (figures: Figures) => number;
  readonly unit: string;
  /** The value of the full width; undefined: the largest value. */
  readonly full?: number;
}

const PANELS: readonly Panel[] = [
  { title: 'Kubelet rejections for 100 VMs (less is better)', value: ({ rejections }) => rejections, unit: '' },
  { title: 'VMs that run within 10 s', value: ({ soon }) => soon * 100, unit: ' %', full: 100 },
  { title: 'VMs on the NUMA node of their network', value: ({ near }) => (near ?? 0) * 100, unit: ' %', full: 100 },
  {
    title: 'Idle cores of a full fleet (less is better)',
    value: ({ idleCores }) => idleCores,
    unit: ' %',
    full: 100,
  },
];

/** Pixels. As wide as a phone, so that the text is readable there, too; each name is above its bar. */
const [WIDTH, LEFT, BAR, ROW, HEAD] = [390, 16, 12, 34, 16] as const;
const PANEL = HEAD + CONTENDERS.length * ROW + 20;
const LENGTH = WIDTH - 2 * LEFT - 44;
const TOP = 64;

/**
 * Bars of each contender: the mean over the fleets with SMT on which all contenders were measured, with VFs, until the
 * fleet was full.
 */
export function outcomeChart(results: readonly Result[]): string {
  const measured = CONTENDERS.filter((one) => results.some(({ contender }) => contender === one));
  const fleets = FLEETS.filter(({ name, threads }) => {
    const of = (one: Contender) =>
      results.some(
        (result) => result.fleet === name && result.contender === one && result.vfs !== undefined && fillsFleet(result),
      );
    return threads === 2 && measured.every(of);
  }).map(({ name }) => name);
  const mean = (one: Contender, value: Panel['value']) => {
    const values = results
      .filter(({ contender, fleet }) => contender === one && fleets.includes(fleet))
      .map(({ figures }) => value(figures));
    return values.reduce((sum, each) => sum + each, 0) / Math.max(1, values.length);
  };
  const panels = PANELS.map(({ title, value, unit, full }, index) => {
    const values = measured.map((one) => mean(one, value));
    const most = full ?? Math.max(1, ...values);
    const top = TOP + index * PANEL;
    const bars = measured.map((one, i) => {
      const y = top + HEAD + 8 + i * ROW;
      const length = (LENGTH * (values[i] ?? 0)) / most;
      const kind = one === 'plumbline' ? 'ours' : 'theirs';
      return [
        `<text class="name" x="${LEFT}" y="${y - 4}">${TITLES[one]}</text>`,
        `<rect class="${kind}" x="${LEFT}" y="${y}" width="${Math.max(1, length).toFixed(1)}" height="${BAR}" rx="2"/>`,
        `<text class="value" x="${(LEFT + length + 8).toFixed(1)}" y="${y + 10}">${(values[i] ?? 0).toFixed(0)}${unit}</text>`,
      ].join('\n');
    });
    return [`<text class="title" x="${LEFT}" y="${top}">${title}</text>`, ...bars].join('\n');
  });
  const height = TOP + PANELS.length * PANEL;
  const figuresText = PANELS.map(
    ({ title, value, unit }) =>
      `${title}: ${measured.map((one) => `${TITLES[one]} ${mean(one, value).toFixed(0)}${unit}`).join(', ')}`,
  ).join('; ');
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${height}" width="${WIDTH}" height="${height}" role="img" aria-labelledby="t d">
<title id="t">One stream of VMs, ${measured.length} ways to place it</title>
<desc id="d">${figuresText}.</desc>
<style>
  svg { font-family: system-ui, sans-serif; --ink: #1d2733; --soft: #55606e; --ours: #2b6cb0; --theirs: #aab4bf; --bg: #ffffff }
  @media (prefers-color-scheme: dark) { svg { --ink: #e8edf3; --soft: #b3bdc9; --ours: #63a4f4; --theirs: #5a6673; --bg: #12161b } }
  .bg { fill: var(--bg) }
  .title { font-size: 13px; font-weight: 600; fill: var(--ink) }
  .name { font-size: 13px; fill: var(--ink) }
  .value { font-size: 12.5px; fill: var(--soft) }
  .ours { fill: var(--ours) }
  .theirs { fill: var(--theirs) }
</style>
<rect class="bg" width="${WIDTH}" height="${height}"/>
<text class="value" x="${LEFT}" y="20">${fleets.length === 1 ? `The fleet ${fleets[0]}` : `Means of ${fleets.length} fleets with SMT`}; emulated kubelets,</text>
<text class="value" x="${LEFT}" y="37">real kube-apiserver and kube-scheduler</text>
${panels.join('\n')}
</svg>
`;
}
