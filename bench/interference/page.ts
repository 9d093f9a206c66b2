import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { root } from '../../test/support/bundles.ts';
import { writeBetween } from '../support/write-between.ts';
import { DELAYS } from './figures.ts';
import { SECONDS } from './measure.ts';
import { CONTENDERS, type Contender, type Results, readResults, TITLES } from './results.ts';

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

/** Pixels. As wide as a phone, so that the text is readable there, too. */
const [WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM] = [390, 440, 62, 20, 116, 56] as const;
/** Powers of ten of the share: from all packets down to one in a hundred thousand. */
const [MAX_POWER, MIN_POWER] = [0, -5] as const;

const x = (index: number) => LEFT + ((WIDTH - LEFT - RIGHT) * index) / (DELAYS.length - 1);
const y = (share: number) => {
  const power = Math.max(MIN_POWER, Math.log10(Math.max(share, Number.MIN_VALUE)));
  return TOP + ((HEIGHT - TOP - BOTTOM) * (MAX_POWER - power)) / (MAX_POWER - MIN_POWER);
};

/** So many marks have room below the axis. */
const LABELLED = DELAYS.filter((_, i) => i % 2 === 0);

const delayText = (value: number) => (value < 1000 ? `${value} µs` : `${value / 1000} ms`);
const percent = (power: number) => `${Number((10 ** (power + 2)).toPrecision(1))} %`;

/** The share of packets that wait longer than a delay, both on logarithmic scales, a line for each contender. */
export function interferenceChart({ figures }: Results): string {
  const line = (one: Contender) =>
    figures[one].longer.map((share, i) => `${x(i).toFixed(1)},${y(share).toFixed(1)}`).join(' ');
  const powers = Array.from({ length: MAX_POWER - MIN_POWER + 1 }, (_, i) => MAX_POWER - i);
  const grid = powers.map((power) => {
    const at = y(10 ** power).toFixed(1);
    return `<line class="grid" x1="${LEFT}" x2="${WIDTH - RIGHT}" y1="${at}" y2="${at}"/><text class="mark" x="${LEFT - 8}" y="${Number(at) + 4}" text-anchor="end">${percent(power)}</text>`;
  });
  const marks = LABELLED.map(
    (delay) =>
      `<text class="mark" x="${x(DELAYS.indexOf(delay)).toFixed(1)}" y="${HEIGHT - BOTTOM + 18}" text-anchor="middle">${delayText(delay)}</text>`,
  );
  const legend = CONTENDERS.map((one, i) => {
    const at = 16 + (i % 2) * 186;
    const middle = 68 + Math.floor(i / 2) * 22;
    return `<line class="line ${one}" x1="${at}" x2="${at + 22}" y1="${middle}" y2="${middle}"/><text class="name" x="${at + 28}" y="${middle + 4}">${TITLES[one]}</text>`;
  });
  const figuresText = CONTENDERS.map((one) => `${TITLES[one]}: p99.9 ${figures[one].p999.toFixed(0)} µs`).join(', ');
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${HEIGHT}" width="${WIDTH}" height="${HEIGHT}" role="img" aria-labelledby="t d">
<title id="t">How long a packet waits for a VM that starts next to a loaded Open vSwitch</title>
<desc id="d">The share of packets that wait longer than a delay. ${figuresText}.</desc>
<style>
  svg { font-family: system-ui, sans-serif; --ink: #1d2733; --soft: #55606e; --rule: #dfe4ea; --bg: #ffffff; --ours: #2b6cb0; --bad: #c2410c; --loop: #a16207; --floor: #6b7785 }
  @media (prefers-color-scheme: dark) { svg { --ink: #e8edf3; --soft: #b3bdc9; --rule: #2a323c; --bg: #12161b; --ours: #63a4f4; --bad: #fb8a5c; --loop: #e3b341; --floor: #8b97a5 } }
  .bg { fill: var(--bg) }
  .title { font-size: 13px; font-weight: 600; fill: var(--ink) }
  .name { font-size: 13px; fill: var(--ink) }
  .mark { font-size: 12px; fill: var(--soft) }
  .grid { stroke: var(--rule); stroke-width: 1 }
  .line { fill: none; stroke-width: 2.5 }
  .apart { stroke: var(--floor); stroke-dasharray: 5 4 }
  .unmanaged { stroke: var(--bad) }
  .loop { stroke: var(--loop) }
  .plumbline { stroke: var(--ours) }
</style>
<rect class="bg" width="${WIDTH}" height="${HEIGHT}"/>
<text class="title" x="16" y="24">Share of packets that wait longer than a delay,</text>
<text class="title" x="16" y="42">in a VM’s first seconds</text>
${[...legend, ...grid, ...marks].join('\n')}
${CONTENDERS.map((one) => `<polyline class="line ${one}" points="${line(one)}"/>`).join('\n')}
<text class="mark" x="${(LEFT + WIDTH - RIGHT) / 2}" y="${HEIGHT - 12}" text-anchor="middle">delay until the VM’s CPU looks at the packet</text>
</svg>
`;
}
