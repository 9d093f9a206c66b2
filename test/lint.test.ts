import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join, relative, resolve } from 'node:path';

const root = join(import.meta.dirname, '..');

/** Who may import whom. Everything else of ours is forbidden, and the linter must say so. */
const MAY_IMPORT: Readonly<Record<string, readonly string[]>> = {
  model: [],
  runtime: ['model'],
  kube: ['model', 'runtime'],
  native: [],
  hardware: ['model'],
  webhook: ['model', 'runtime', 'kube'],
  'scheduler-plugin': ['model', 'runtime', 'kube'],
  'node-agent': ['model', 'runtime', 'kube', 'native', 'hardware'],
  sandbox: ['model', 'runtime', 'kube'],
  cli: ['model', 'kube', 'native', 'hardware', 'sandbox', 'console/server'],
  'console/server': ['model', 'runtime', 'kube'],
};
const FOLDERS = Object.keys(MAY_IMPORT);

interface Probe {
  readonly folder: string;
  readonly name: string;
  readonly content: string;
  /** The rule that must refuse it, or undefined where it must pass. */
  readonly rule: string | undefined;
}

const importProbes: Probe[] = FOLDERS.flatMap((folder) =>
  FOLDERS.filter((other) => other !== folder).map((other) => ({
    folder,
    name: `imports-${other.replace('/', '-')}`,
    content: `import { thing } from '../../${other}/thing.ts';\n\nexport const copy = thing;\n`,
    rule: MAY_IMPORT[folder]?.includes(other) ? undefined : 'lint/style/noRestrictedImports',
  })),
);

const purityProbes: Probe[] = [
  ['files', "import { readFile } from 'node:fs/promises';\n\nexport const read = readFile;\n", 'noRestrictedImports'],
  ['express', "import express from 'express';\n\nexport const app = express;\n", 'noRestrictedImports'],
  ['process', 'export const pid = process.pid;\n', 'noRestrictedGlobals'],
  ['clock', 'export const now = () => performance.now();\n', 'noRestrictedGlobals'],
].map(([name = '', content = '', rule = '']) => ({ folder: 'model', name, content, rule: `lint/style/${rule}` }));

const environmentProbe: Probe = {
  folder: 'webhook',
  name: 'environment',
  content: 'export const home = process.env.HOME;\n',
  rule: 'lint/style/noProcessEnv',
};

const probes = [...importProbes, ...purityProbes, environmentProbe];
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
  this.timeout(60_000);
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

  it('knows every folder with code', () => {
    const folders = readdirSync(root).filter(
      (name) => statSync(join(root, name)).isDirectory() && !name.startsWith('.'),
    );
    const others = ['bench', 'test', 'docs', 'manifests', 'console', 'dist', 'node_modules'];
    assert.deepEqual(
      folders.filter((name) => !others.includes(name)).sort(),
      FOLDERS.filter((name) => !name.includes('/')).sort(),
    );
  });
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

  it('are joined with others by underSignals alone: AbortSignal.any would leave something with them at each call', () => {
    assert.ok(sources.length > 100);
    const joining = sources.filter((path) => readFileSync(join(root, path), 'utf8').includes('AbortSignal.any('));
    assert.deepEqual(joining, []);
  });
});
