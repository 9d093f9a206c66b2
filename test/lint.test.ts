import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join, relative, resolve } from 'node:path';

const root = join(import.meta.dirname, '..');

interface Probe {
  readonly folder: string;
  readonly name: string;
  readonly content: string;
  /** The rule that must refuse it, or undefined where it must pass. */
  readonly rule: string | undefined;
}

const purityProbes: Probe[] = [
  ['process', 'export const pid = process.pid;\n'],
  ['clock', 'export const now = () => performance.now();\n'],
].map(([name = '', content = '']) => ({ folder: 'model', name, content, rule: 'lint/style/noRestrictedGlobals' }));

const environmentProbe: Probe = {
  folder: 'webhook',
  name: 'environment',
  content: 'export const home = process.env.HOME;\n',
  rule: 'lint/style/noProcessEnv',
};

const configProbe: Probe = { ...environmentProbe, name: 'config', rule: undefined };

const probes = [...purityProbes, environmentProbe, configProbe];
const FOLDERS = [...new Set(probes.map(({ folder }) => folder))];
const directory = (folder: string) => join(root, folder, 'lint-probe');
const fileOf = ({ folder, name }: Probe) => join(directory(folder), `${name}.ts`);

/** The rules broken in each file, by path below the root; one run of the linter over all probes. */
function lintProbes(): Map<string, string[]> {
  const broken = new Map<string, string[]>();
  try {
    for (const probe of probes) {
      mkdirSync(directory(probe.folder), { recursive: true });
      writeFileSync(fileOf(probe), probe.content);
    }
    const { stdout } = spawnSync(
      join(root, 'node_modules/.bin/biome'),
      ['lint', '--reporter=json', '--max-diagnostics=none', ...FOLDERS.map(directory)],
      { cwd: root, encoding: 'utf8', maxBuffer: 64 * 1024 * 1024 },
    );
    const report = JSON.parse(stdout) as { diagnostics: { category: string; location: { path: string } }[] };
    for (const { category, location } of report.diagnostics) {
      const path = relative(root, resolve(root, location.path));
      broken.set(path, [...(broken.get(path) ?? []), category]);
    }
    return broken;
  } finally {
    for (const folder of FOLDERS) rmSync(directory(folder), { recursive: true, force: true });
  }
}

describe('the house rules in the linter', function () {
  this.timeout(300_000);
  let broken: Map<string, string[]>;
  before(() => {
    broken = lintProbes();
  });

  for (const probe of probes) {
    it(`${probe.folder}/ ${probe.name}: ${probe.rule === undefined ? 'allowed' : 'refused'}`, () => {
      const rules = broken.get(relative(root, fileOf(probe))) ?? [];
      if (probe.rule === undefined) assert.deepEqual(rules, []);
      else assert.ok(rules.includes(probe.rule), `broken rules: ${rules.join(', ') || 'none'}`);
    });
  }
});

describe('signals that live as long as a daemon', () => {
  const sources = [
    'runtime',
    'kube',
    'webhook',
    'scheduler-plugin',
    'node-agent',
    'native',
    'hardware',
    'console/server',
  ].flatMap((folder) =>
    readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
      .filter((path) => path.endsWith('.ts'))
      .map((path) => join(folder, path)),
  );

  it('are combined with others only by underSignals, because AbortSignal.any would leak at each call', () => {
    assert.ok(sources.length > 100);
    const joining = sources.filter((path) => readFileSync(join(root, path), 'utf8').includes('AbortSignal.any('));
    assert.deepEqual(joining, []);
  });
});
