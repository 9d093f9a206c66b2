import assert from 'node:assert/strict';
import { execFile, spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import packageJson from '../../package.json' with { type: 'json' };
import { root } from '../support/bundles.ts';
import { needs, skipFor } from '../support/parts.ts';
import { type BuiltImage, createEngine, type Engine } from './engine.ts';

const run = promisify(execFile);
const KOFFI = '/plumbline/node_modules/koffi';
const CALL = `require('${KOFFI}').load('libc.so.6').func('int getpid()')() > 0 || process.exit(1)`;

/** The image with most in it: bundles, koffi's module and the gate, compiled in the build. */
describe('the node agent’s image, built from the Dockerfile by buildah', function () {
  needs('root');
  needs('buildah');
  this.timeout(30 * 60_000);
  let directory: string;
  let engine: Engine;
  let image: BuiltImage;
  const file = (path: string) => join(directory, path);

  before(async function () {
    await run('npm', ['ping']).catch(() =>
      skipFor({ name: 'npm’s registry', install: 'run where npm ping succeeds' }, this),
    );
    directory = mkdtempSync(join(tmpdir(), 'plumbline-image-'));
    engine = await createEngine();
    const began = performance.now();
    image = await engine.build('node-agent');
    await engine.unpack(image, directory);
    console.log(`      ${image.digest} in ${((performance.now() - began) / 1000).toFixed(0)} s, bases included`);
  });
  after(async () => {
    await engine?.close();
    if (directory !== undefined) rmSync(directory, { recursive: true, force: true });
  });

  it('starts as its entry point says, and has the version of these sources', async () => {
    assert.match(await engine.start(image, '--help'), /Usage: plumbline-node-agent/);
    assert.equal(await engine.start(image, '--version'), packageJson.version);
    assert.equal(image.config.User, '0:0');
  });

  it('calls the C library by koffi, and has a gate that answers', async () => {
    await run('chroot', [directory, '/nodejs/bin/node', '-e', CALL]);
    const gate = spawnSync(file('usr/local/bin/plumbline-gate'), { encoding: 'utf8', input: '' });
    assert.match(gate.stdout, /required env variables \[CNI_COMMAND\] missing/);
  });

  it('has the bill of materials of what is in it, by the lock file', () => {
    const bill = JSON.parse(readFileSync(file('plumbline/sbom.cdx.json'), 'utf8')) as {
      readonly components: readonly { readonly name: string; readonly version: string }[];
    };
    const lock = JSON.parse(readFileSync(join(root, 'package-lock.json'), 'utf8')) as {
      readonly packages: Readonly<Record<string, { readonly version?: string }>>;
    };
    const locked = new Set(
      Object.entries(lock.packages).map(([path, { version }]) => `${path.split('node_modules/').at(-1)} ${version}`),
    );
    assert.ok(bill.components.length > 5, `${bill.components.length} components`);
    assert.deepEqual(
      bill.components.filter((one) => !locked.has(`${one.name} ${one.version}`)),
      [],
    );
  });
});
