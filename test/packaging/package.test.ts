import assert from 'node:assert/strict';
import { execFileSync, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createEmbeddedCluster } from '../../cli/demo/cluster.ts';
import { buildOnce, dist, root } from '../support/bundles.ts';
import { needs } from '../support/parts.ts';
import { type Registry, startRegistry } from './registry-stand-in.ts';

interface Manifest {
  readonly name: string;
  readonly version: string;
  readonly private?: boolean;
  readonly bin: Readonly<Record<string, string>>;
  readonly dependencies: Readonly<Record<string, string>>;
}

const readManifest = (path: string) => JSON.parse(readFileSync(path, 'utf8')) as Manifest;
const own = readManifest(join(root, 'package.json'));
const NATIVE = `@koromix/koffi-${process.platform}-${process.arch}`;

/** What the page gives to `npm install -g` for a checkout. */
function installedFromCheckout(): string {
  const page = readFileSync(join(root, 'docs/reference/cli.md'), 'utf8');
  const [, source = ''] = /`npm install -g ([^`]*DIR)`/.exec(page) ?? [];
  return source;
}

describe('the npm package', function () {
  needs('linux');
  this.timeout(600_000);
  const directory = mkdtempSync(join(tmpdir(), 'plumbline-package-'));
  const out = join(directory, 'out');
  const prefix = join(directory, 'prefix');
  const inPackage = (path: string) => join(out, path);
  /** Nothing of this machine: no cache, no npm settings, no modules. */
  const env = { PATH: process.env['PATH'], HOME: directory, TMPDIR: directory };
  const npm = async (...args: readonly string[]) => {
    const child = spawn('npm', args, { cwd: directory, env, stdio: ['ignore', 'pipe', 'pipe'] });
    const text = { stdout: '', stderr: '' };
    for (const stream of ['stdout', 'stderr'] as const)
      child[stream].on('data', (chunk: Buffer) => {
        text[stream] += chunk.toString();
      });
    const [status] = (await once(child, 'close')) as [number | null];
    assert.equal(status, 0, text.stderr);
    return text.stdout;
  };
  let packed: {
    readonly filename: string;
    readonly files: readonly { readonly path: string; readonly mode: number }[];
  };
  let registry: Registry | undefined;

  before(async () => {
    buildOnce();
    const script = ['--import', 'tsx', 'packaging/package.ts', '--out', out];
    execFileSync(process.execPath, script, { cwd: root, stdio: 'pipe' });
    [packed] = JSON.parse(await npm('pack', out, '--json', '--pack-destination', directory)) as [typeof packed];
  });
  after(async () => {
    await registry?.close();
    rmSync(directory, { recursive: true, force: true });
  });

  it('contains only the files that it runs', () => {
    const files = packed.files.map(({ path }) => path);
    const page = ['console.css', 'console.js', 'icon.svg', 'index.html'].map((file) => `dist/console/${file}`);
    const parts = readdirSync(join(dist, 'cli')).map((file) => `dist/cli/${file}`);
    assert.ok(parts.length > 10, 'a part for each subcommand');
    assert.deepEqual(files.sort(), [
      'LICENSE',
      'README.md',
      'THIRD-PARTY-LICENSES',
      'dist/api-schemas.json',
      ...parts.sort(),
      'dist/client-node-port-forward.cjs',
      ...page,
      'dist/kubeconfig.cjs',
      'dist/node-agent.cjs',
      'dist/ovs-stand-in.cjs',
      'dist/plumbline.mjs',
      'dist/qemu-stand-in.cjs',
      'dist/scheduler-plugin.cjs',
      'dist/webhook.cjs',
      'manifests/base/node-agent/daemonset-dpu-host.yaml',
      'manifests/base/node-agent/daemonset.yaml',
      'manifests/base/scheduler/config.yaml',
      'manifests/base/scheduler/deployment.yaml',
      'manifests/base/webhook/deployment.yaml',
      'manifests/base/webhook/mutating-webhook.yaml',
      'manifests/base/webhook/opt-in-webhook.yaml',
      'manifests/base/webhook/required.yaml',
      'manifests/base/webhook/validating-webhook.yaml',
      'package.json',
    ]);
    const command = packed.files.find(({ path }) => path === 'dist/plumbline.mjs');
    assert.equal((command?.mode ?? 0) & 0o111, 0o111);
  });

  it('depends on the packages of its bundles, in the repository’s versions; the repository itself cannot be published', () => {
    const files = readdirSync(inPackage('dist'), { recursive: true, encoding: 'utf8' });
    const texts = files.filter((file) => /\.[cm]js$/.test(file)).map((file) => readFileSync(inPackage(`dist/${file}`)));
    const imports = [...texts.join('\n').matchAll(/\b(?:require\(|from)"([^"./][^"]*)"/g)];
    const required = imports.map(([, name = '']) => name);
    // ws tries two more packages, which the repository does not have either.
    const { packages } = JSON.parse(readFileSync(join(root, 'package-lock.json'), 'utf8')) as { packages: object };
    const isInstalled = (name: string) => `node_modules/${name}` in packages;
    const manifest = readManifest(inPackage('package.json'));
    assert.deepEqual(Object.keys(manifest.dependencies), [...new Set(required.filter(isInstalled))]);
    for (const [name, version] of Object.entries(manifest.dependencies)) assert.equal(version, own.dependencies[name]);
    assert.deepEqual([manifest.version, manifest.bin, manifest.private], [own.version, own.bin, undefined]);
    assert.notEqual(manifest.name, 'plumbline', 'another project has that name');
    assert.equal(own.private, true);
  });

  for (const [from, source] of [
    ['a checkout, as docs/reference/cli.md says', () => installedFromCheckout().replace('DIR', out).split(' ')],
    ['the file of a release', () => [join(directory, packed.filename)]],
  ] as const) {
    it(`gives the commands in an empty prefix, and requests only koffi from the registry: ${from}`, async () => {
      rmSync(prefix, { recursive: true, force: true });
      mkdirSync(prefix);
      registry ??= await startRegistry(['koffi', NATIVE], directory);
      const flags = ['--prefix', prefix, '--registry', registry.url, '--no-audit', '--no-fund', '--ignore-scripts'];
      await npm('install', '-g', ...flags, ...source());
      const others = registry.requests.filter((name) => name !== 'koffi' && !name.startsWith('@koromix/koffi-'));
      assert.deepEqual(others, []);
      assert.deepEqual(readdirSync(join(prefix, 'bin')).sort(), Object.keys(own.bin).sort());
      const run = (name: string, ...args: readonly string[]) =>
        spawnSync(join(prefix, 'bin', name), args, { cwd: directory, env, encoding: 'utf8' });
      assert.equal(run('plumbline', '--version').stdout, `${own.version}\n`);
      assert.match(run('kubectl-plumbline', '--help').stdout, /^Usage: kubectl plumbline <command>/);
      assert.match(run('kubectl_complete-plumbline', 'expl').stdout, /^explain\t/m);
      // This one loads the native module before it searches for QEMU.
      const { status, stderr } = run('plumbline', 'qemu', '--qmp', '/nonexistent/qmp', '--mask', '0');
      assert.equal(status, 3, stderr);
      assert.match(stderr, /^plumbline: \/nonexistent\/qmp: connect ENOENT/);
    });
  }

  it('has the files of the demo', async () => {
    assert.ok(registry, 'the package is not installed: see the test before');
    const home = join(prefix, 'lib/node_modules', readManifest(inPackage('package.json')).name);
    for (const daemon of ['webhook', 'scheduler-plugin', 'node-agent']) {
      const args = [join(home, `dist/${daemon}.cjs`), '--help'];
      const { status, stdout } = spawnSync(process.execPath, args, { cwd: directory, env, encoding: 'utf8' });
      assert.equal(status, 0, daemon);
      assert.match(stdout, /--kubeconfig|--probe-port/);
    }
    const onFault = (error: unknown) => assert.fail(String(error));
    const cluster = createEmbeddedCluster({ directory, nodes: [], packageRoot: home, onFault });
    try {
      await cluster.start();
      await cluster.prepare();
      await cluster.wire({ webhook: 1, extender: 1 });
    } finally {
      await cluster.stop();
    }
  });
});
