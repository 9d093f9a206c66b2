import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parse, stringify } from 'yaml';
import { root } from '../support/bundles.ts';
import { needs, pathOf } from '../support/parts.ts';

const CHART = join(root, 'manifests/chart/plumbline');
const chartFile = (name: string) => readFileSync(join(CHART, name), 'utf8');

type Values = { readonly [key: string]: unknown };

const isTable = (value: unknown): value is Values =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** The values of `over`, and otherwise those of `under`: tables key by key, everything else as a whole. */
function coalesce(over: Values, under: Values): Values {
  const merged: Record<string, unknown> = { ...under };
  for (const [key, value] of Object.entries(over)) {
    const below = under[key];
    if (value === null) delete merged[key];
    else merged[key] = isTable(value) && isTable(below) ? coalesce(value, below) : value;
  }
  return merged;
}

interface Release {
  readonly defaults: Values;
  /** The user's --set and -f. */
  readonly overrides: Values;
}

/**
 * The values of an upgrade, for each way to request one. Source: helm upgrade --help; reuseValues in
 * pkg/action/upgrade.go of Helm 3. With --reuse-values the defaults of the old chart replace those of the new chart.
 */
const WAYS: Readonly<Record<string, (old: Release, next: Release) => Values>> = {
  '--reset-values': (_, next) => coalesce(next.overrides, next.defaults),
  '--reuse-values': (old, next) =>
    coalesce(coalesce(next.overrides, old.overrides), coalesce(old.overrides, old.defaults)),
  '--reset-then-reuse-values': (old, next) => coalesce(coalesce(next.overrides, old.overrides), next.defaults),
  'no flag': (old, next) =>
    coalesce(Object.keys(next.overrides).length === 0 ? old.overrides : next.overrides, next.defaults),
};

/** The values with images of Plumbline. */
const IMAGES = ['webhook', 'schedulerPlugin', 'nodeAgent', 'console'];
const tagIn = (values: Values, part: string) => ((values[part] as Values)['image'] as Values)['tag'];
const own = parse(chartFile('values.yaml')) as Values;

describe('an upgrade of the Helm release', () => {
  for (const [way, valuesOf] of Object.entries(WAYS)) {
    it(`${way}: the images follow the new chart, except for a tag of the user`, () => {
      const overrides = { webhook: { replicas: 3 }, console: { image: { tag: 'mine' } } };
      const values = valuesOf({ defaults: own, overrides }, { defaults: own, overrides: {} });
      const expected = way === '--reset-values' ? '' : 'mine';
      assert.deepEqual(
        IMAGES.map((part) => tagIn(values, part)),
        ['', '', '', expected],
      );
      assert.equal((values['webhook'] as Values)['replicas'], way === '--reset-values' ? 2 : 3);
    });
  }

  it('an empty tag is the chart’s appVersion, and all templates name images in this way', () => {
    const helpers = chartFile('templates/_helpers.tpl');
    assert.ok(helpers.includes('{{ $image.repository }}:{{ $image.tag | default $root.Chart.AppVersion }}'));
    const images = readdirSync(join(CHART, 'templates'))
      .filter((name) => name.endsWith('.yaml'))
      .flatMap((name) => chartFile(`templates/${name}`).match(/^ *(- )?image: .*$/gm) ?? [])
      .map((line) => line.replace(/^ *(- )?image: /, ''));
    assert.ok(images.length >= 6, images.join('\n'));
    for (const image of images) assert.match(image, /^\{\{ include "plumbline\.(image|kubeScheduler)" /);
  });
});

describe('an upgrade of the Helm release, rendered', function () {
  needs('helm');
  this.timeout(60_000);
  const directory = mkdtempSync(join(tmpdir(), 'plumbline-upgrade-'));
  after(() => rmSync(directory, { recursive: true, force: true }));

  it('9.8.7 of the chart runs 9.8.7 of every daemon', () => {
    const next = join(directory, 'next');
    cpSync(CHART, next, { recursive: true });
    const chart = parse(chartFile('Chart.yaml')) as Values;
    writeFileSync(join(next, 'Chart.yaml'), stringify({ ...chart, version: '9.8.7', appVersion: '9.8.7' }));
    writeFileSync(
      join(next, 'values.yaml'),
      stringify({ ...own, console: { ...(own['console'] as Values), enabled: true } }),
    );
    const args = ['template', 'plumbline', next, '-n', 'plumbline-system'];
    const { status, stdout, stderr } = spawnSync(pathOf('helm'), args, { encoding: 'utf8' });
    assert.equal(status, 0, stderr);
    const images = [...stdout.matchAll(/image: (\S*plumbline-[a-z-]+:\S+)/g)].map(([, image]) => image);
    assert.ok(images.length >= 4);
    for (const image of images) assert.match(image ?? '', /:9\.8\.7"?$/);
  });
});
