import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parse } from 'yaml';
import packageJson from '../../package.json' with { type: 'json' };
import { billOfMaterials } from '../../packaging/bill-of-materials.ts';
import { root } from '../support/bundles.ts';

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

  it('krew: has each archive with its address and checksum, and refuses a wrong one', () => {
    const [amd64, arm64] = ['amd64', 'arm64'].map((arch) => file(`plumbline-1.2.3-linux-${arch}.tar.gz`, arch));
    const flags = ['--version', '1.2.3', '--base-url', 'https://example.org/releases/'];
    const { status, stdout, stderr } = run('krew', ...flags, amd64 ?? '', arm64 ?? '');
    assert.equal(status, 0, stderr);
    const { metadata, spec } = parse(stdout) as {
      metadata: { name: string };
      spec: { version: string; shortDescription: string; platforms: Readonly<Record<string, unknown>>[] };
    };
    assert.deepEqual([metadata.name, spec.version], ['plumbline', 'v1.2.3']);
    // krew cuts longer texts.
    assert.ok(spec.shortDescription.length <= 50);
    assert.deepEqual(
      spec.platforms.map(({ selector, uri, sha256, bin }) => ({ selector, uri, sha256, bin })),
      ['amd64', 'arm64'].map((arch) => ({
        selector: { matchLabels: { os: 'linux', arch } },
        uri: `https://example.org/releases/plumbline-1.2.3-linux-${arch}.tar.gz`,
        sha256: createHash('sha256').update(arch).digest('hex'),
        bin: 'plumbline',
      })),
    );
    for (const [args, message] of [
      [[...flags], /name at least one archive/],
      [[...flags, file('plumbline.zip', '')], /expected a name that ends in -linux-amd64/],
      [[...flags, join(directory, 'none-linux-amd64.tar.gz')], /cannot be read/],
      [['--version', 'v1', '--base-url', 'https://example.org', amd64 ?? ''], /--version v1: expected one as 1\.2\.3/],
      [['--version', '1.2.3', '--base-url', 'http://example.org', amd64 ?? ''], /https:/],
      [['--version', '1.2.3', amd64 ?? ''], /--base-url is missing/],
    ] as const) {
      const refused = run('krew', ...args);
      assert.equal(refused.status, 2);
      assert.match(refused.stderr, message);
    }
  });

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
    const bom = JSON.parse(stdout) as { bomFormat: string; components: { name: string; version: string }[] };
    assert.equal(bom.bomFormat, 'CycloneDX');
    const versions = Object.fromEntries(bom.components.map(({ name, version }) => [name, version]));
    for (const [name, version] of Object.entries(packageJson.dependencies)) assert.equal(versions[name], version, name);
    for (const name of ['mocha', 'typescript', 'esbuild', 'postject']) assert.equal(versions[name], undefined, name);
    assert.equal(run('sbom').stdout, stdout);
  });

  it('SBOM: a component has its digest, licence and address; a duplicate is listed once', () => {
    const one = { version: '1.0.0', license: 'MIT', integrity: 'sha512-AAEC' };
    const { components } = billOfMaterials({
      version: '0.1.0',
      packages: {
        '': {},
        'node_modules/@a/b': one,
        'node_modules/c/node_modules/@a/b': one,
        'node_modules/c/node_modules/d': { version: '2.0.0', optional: true },
        'node_modules/e': { version: '3.0.0', dev: true },
      },
    }) as { components: unknown };
    assert.deepEqual(components, [
      {
        'bom-ref': '@a/b@1.0.0',
        type: 'library',
        name: '@a/b',
        version: '1.0.0',
        scope: 'required',
        purl: 'pkg:npm/%40a/b@1.0.0',
        hashes: [{ alg: 'SHA-512', content: '000102' }],
        licenses: [{ expression: 'MIT' }],
      },
      {
        'bom-ref': 'd@2.0.0',
        type: 'library',
        name: 'd',
        version: '2.0.0',
        scope: 'optional',
        purl: 'pkg:npm/d@2.0.0',
      },
    ]);
  });

  it('release notes exist for the next version', () => {
    const { status, stdout } = run('release-notes', packageJson.version);
    assert.equal(status, 0);
    assert.match(stdout, /^- /m);
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
    it(`${name}: is valid bash`, () => {
      const parsed = spawnSync('bash', ['-n', join(root, 'packaging', name)], { encoding: 'utf8' });
      assert.equal(parsed.status, 0, parsed.stderr);
    });
    if (name === 'kind-smoke.sh') continue;
    it(`${name}: prints its usage without arguments`, () => {
      const { status, stderr } = spawnSync(join(root, 'packaging', name), [], { cwd: root, encoding: 'utf8' });
      assert.notEqual(status, 0);
      assert.match(stderr, new RegExp(`usage: packaging/${name.replace('.', '\\.')}`));
    });
  }
});
