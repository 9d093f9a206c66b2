import assert from 'node:assert/strict';
import { execFile, spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import packageJson from '../../package.json' with { type: 'json' };
import { IMAGES } from '../../packaging/images/assemble.ts';
import { tempDirectories } from '../support/files.ts';
import { needs, skipFor } from '../support/parts.ts';
import { HERE, type ImageArchitecture, THERE } from './bases-fixture.ts';
import { type BuiltImage, createEngine, type Engine } from './engine-stage.ts';

const run = promisify(execFile);
const NAMES = Object.keys(IMAGES);
const AGENT = 'node-agent';
const KOFFI = 'plumbline/node_modules/koffi';
const MACHINES = { amd64: 62, arm64: 183 } as const;
const CPUS = { amd64: 'x64', arm64: 'arm64' } as const;
const callBy = (koffi: string) =>
  `require('${koffi}').load('libc.so.6').func('int getpid()')() > 0 || process.exit(1); console.log('called')`;
const NO_CALL = /required env variables \[CNI_COMMAND\] missing/;

describe('images that buildah builds from the Dockerfile', function () {
  needs('root');
  needs('buildah');
  this.timeout(60 * 60_000);
  const temp = tempDirectories();
  let directory: string;
  let engine: Engine;
  const images = new Map<string, BuiltImage>();

  before(async function () {
    await run('npm', ['ping']).catch(() =>
      skipFor({ name: 'npm’s registry', install: 'run where npm ping succeeds' }, this),
    );
    directory = temp();
    engine = await createEngine();
  });
  after(() => engine?.close());

  const tree = (name: string, architecture: ImageArchitecture, path = '') =>
    join(directory, `${name}-${architecture}`, path);
  const build = async (name: string, architecture: ImageArchitecture): Promise<BuiltImage> => {
    const began = performance.now();
    const image = await engine.build(name, architecture);
    const seconds = ((performance.now() - began) / 1000).toFixed(0);
    console.log(
      `      ${name} ${architecture}: ${(image.added / 1e6).toFixed(1)} MB, ${image.digest}, in ${seconds} s`,
    );
    return image;
  };
  const kept = async (name: string, architecture: ImageArchitecture): Promise<BuiltImage> => {
    const image = await build(name, architecture);
    images.set(`${name} ${architecture}`, image);
    await engine.unpack(image, tree(name, architecture));
    return image;
  };
  const assertMachine = (architecture: ImageArchitecture) => {
    const cpu = CPUS[architecture];
    const module = `plumbline/node_modules/@koromix/koffi-linux-${cpu}/linux_${cpu}/koffi.node`;
    for (const file of ['plumbline/plumbline-gate', module]) {
      assert.equal(readFileSync(tree(AGENT, architecture, file)).readUInt16LE(18), MACHINES[architecture], file);
    }
  };

  describe(`for ${HERE}`, () => {
    for (const name of NAMES) {
      it(`${name}: starts with its entry point and has the version of these sources`, async () => {
        const image = await kept(name, HERE);
        assert.match(await engine.start(image, '--help'), new RegExp(`Usage: plumbline-${name}`));
        assert.equal(await engine.start(image, '--version'), packageJson.version);
        assert.equal(image.config.User, name === AGENT ? '0:0' : '65532:65532');
      });
    }

    it('the agent calls the C library through koffi, and has a gate that answers', async () => {
      assertMachine(HERE);
      await run('chroot', [tree(AGENT, HERE), '/nodejs/bin/node', '-e', callBy(`/${KOFFI}`)]);
      const gate = spawnSync(tree(AGENT, HERE, 'plumbline/plumbline-gate'), { encoding: 'utf8', input: '' });
      assert.match(gate.stdout, NO_CALL);
    });

    it('all images have the same digests after a second build of every step', async () => {
      const first = NAMES.map((name) => images.get(`${name} ${HERE}`));
      await engine.forget(first.flatMap((image) => image ?? []));
      for (const [i, name] of NAMES.entries()) {
        assert.equal((await build(name, HERE)).digest, first[i]?.digest, name);
      }
    });
  });

  describe(`for ${THERE}, without emulation`, () => {
    needs('qemuUser');

    for (const name of NAMES) {
      it(`${name}: starts under qemu-user`, async () => {
        const { config } = await kept(name, THERE);
        const [, program = ''] = config.Entrypoint ?? [];
        const said = emulate(tree(name, THERE), tree(name, THERE, program), '--version');
        assert.equal(said, packageJson.version);
      });
    }

    it('the agent calls the C library through koffi, and has a gate that answers, under qemu-user', () => {
      assertMachine(THERE);
      const home = tree(AGENT, THERE);
      assert.equal(emulate(home, '-e', callBy(join(home, KOFFI))), 'called');
      const gate = spawnSync(EMULATOR, [tree(AGENT, THERE, 'plumbline/plumbline-gate')], {
        encoding: 'utf8',
        input: '',
      });
      assert.match(gate.stdout, NO_CALL);
    });
  });
});

const EMULATOR = `qemu-${THERE === 'arm64' ? 'aarch64' : 'x86_64'}-static`;

/** Runs Node.js of the other architecture from an image's tree. @returns its output */
function emulate(home: string, ...args: readonly string[]): string {
  const command = ['-L', home, join(home, 'nodejs/bin/node'), ...args];
  const { status, stdout, stderr } = spawnSync(EMULATOR, command, { encoding: 'utf8' });
  assert.equal(status, 0, stderr);
  return stdout.trim();
}
