import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import packageJson from '../package.json' with { type: 'json' };
import { root } from './support/bundles.ts';

const run = (script: string, ...args: readonly string[]) =>
  spawnSync(process.execPath, ['--import', 'tsx', `packaging/${script}.ts`, ...args], { cwd: root, encoding: 'utf8' });

describe('the packaging scripts', function () {
  this.timeout(120_000);
  const directory = mkdtempSync(join(tmpdir(), 'plumbline-scripts-'));
  const file = (name: string, text: string) => {
    writeFileSync(join(directory, name), text);
    return join(directory, name);
  };
  after(() => rmSync(directory, { recursive: true, force: true }));

  it('release notes: print the section of a version, with or without its v', () => {
    const changelog = file(
      'CHANGELOG.md',
      '# Changelog\n\n## 1.1.0 (unreleased)\n\n- New.\n\n## 1.0.0\n\n- Old.\n- Older.\n\n## 0.9.0\n',
    );
    const notes = (version: string) => run('release-notes', version, '--file', changelog);
    assert.equal(notes('v1.0.0').stdout, '- Old.\n- Older.\n');
    const unreleased = notes('1.1.0');
    assert.deepEqual([unreleased.stdout, unreleased.status], ['- New.\n', 0]);
    assert.match(unreleased.stderr, /still marked as unreleased/);
    assert.deepEqual([notes('1.0').status, notes('0.9.0').status], [2, 1]);
    assert.match(notes('1.0').stderr, /has no section 1\.0 \(it has 1\.1\.0, 1\.0\.0, 0\.9\.0\)/);
  });

  it('SBOM: lists every package that may be bundled, with its version; the text is the same each time', () => {
    const { status, stdout, stderr } = run('sbom');
    assert.equal(status, 0, stderr);
    const bom = JSON.parse(stdout) as { bomFormat: string; components: { 'bom-ref': string; hashes: object[] }[] };
    assert.equal(bom.bomFormat, 'CycloneDX');
    assert.ok(bom.components.every(({ hashes }) => hashes.length > 0));
    const versions = Object.fromEntries(
      bom.components.map((component) => /^(.+)@(.+)$/.exec(component['bom-ref'])?.slice(1) ?? []),
    );
    for (const [name, version] of Object.entries(packageJson.dependencies)) assert.equal(versions[name], version, name);
    for (const name of ['mocha', 'typescript', 'esbuild']) assert.equal(versions[name], undefined, name);
    assert.equal(run('sbom').stdout, stdout);
  });

  it('a release is refused while tag and version differ, or the changelog says unreleased', () => {
    const check = (tag: string) => spawnSync('packaging/release-check.sh', [tag], { cwd: root, encoding: 'utf8' });
    const wrong = check('v0.0.0');
    assert.equal(wrong.status, 1);
    assert.match(wrong.stderr, /the tag is v0\.0\.0, and package\.json says/);
    const { status, stderr } = check(`v${packageJson.version}`);
    assert.ok(status === 0 || stderr.includes('unreleased'), stderr);
  });

  for (const name of readdirSync(join(root, 'packaging')).filter((one) => one.endsWith('.sh'))) {
    if (name === 'kind-smoke.sh') continue;
    it(`${name}: prints its usage without arguments`, () => {
      const { status, stderr } = spawnSync(join(root, 'packaging', name), [], { cwd: root, encoding: 'utf8' });
      assert.notEqual(status, 0);
      assert.match(stderr, new RegExp(`usage: packaging/${name.replace('.', '\\.')}`));
    });
  }
});
