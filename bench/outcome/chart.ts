import { CONTENDERS, type Contender, TITLES } from './contenders.ts';
import { FLEETS } from './fleets.ts';
import type { Figures } from './history.ts';
import { fillsFleet, type Result } from './results.ts';

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
  const said = PANELS.map(
    ({ title, value, unit }) =>
      `${title}: ${measured.map((one) => `${TITLES[one]} ${mean(one, value).toFixed(0)}${unit}`).join(', ')}`,
  ).join('; ');
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${height}" width="${WIDTH}" height="${height}" role="img" aria-labelledby="t d">
<title id="t">One stream of VMs, ${measured.length} ways to place it</title>
<desc id="d">${said}.</desc>
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
