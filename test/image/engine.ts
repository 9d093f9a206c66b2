import { execFile } from 'node:child_process';
import { cp, mkdir, mkdtemp, readFile, realpath, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { root } from '../support/bundles.ts';
import { aptOptions, debianSources, debianSuite } from './debian.ts';

const run = promisify(execFile);
const LARGEST_OUTPUT = 64 * 1024 * 1024;

/** What the build stage installs is in the base already: `apt-get install` has nothing to fetch then. */
const BUILD_PACKAGES = ['ca-certificates', 'gcc', 'libc6-dev', 'libstdc++6', 'make', 'musl-tools'];
/** What Node.js is linked with. */
const RUN_PACKAGES = ['libc6', 'libgcc-s1', 'libstdc++6'];

/** A container engine with a storage of its own: buildah, without namespaces and without a registry. */
export interface Engine {
  /** Builds a target of the repository's Dockerfile for this machine. */
  build(target: string): Promise<BuiltImage>;
  /** Runs an image's entry point with arguments. @returns what it prints */
  start(image: BuiltImage, ...args: string[]): Promise<string>;
  /** Copies an image's files into a folder. */
  unpack(image: BuiltImage, directory: string): Promise<void>;
  close(): Promise<void>;
}

export interface BuiltImage {
  readonly id: string;
  /** Of its manifest. */
  readonly digest: string;
  readonly config: { readonly User?: string; readonly Entrypoint?: readonly string[] };
}

interface Inspected {
  readonly FromImageID: string;
  readonly FromImageDigest: string;
  readonly OCIv1: { readonly config: BuiltImage['config'] };
}

/**
 * Registries of images are out of reach of tests, so the bases are made on the spot, of Debian's packages and by the machine's
 * settings of apt: the one that builds has compilers, and this machine's Node.js and npm; the one that images run on has
 * Node.js and the libraries that it is linked with, as distroless has them.
 */
export async function createEngine(): Promise<Engine> {
  const directory = await mkdtemp(join(tmpdir(), 'plumbline-engine-'));
  const places = ['--root', join(directory, 'storage'), '--runroot', join(directory, 'run')];
  const driver = await driverFor(places);
  const buildah = async (...args: string[]) => {
    const options = { maxBuffer: LARGEST_OUTPUT, cwd: root };
    return (await run('buildah', [...places, '--storage-driver', driver, ...args], options)).stdout.trim();
  };
  const bases = createBases(directory, buildah);
  const registry = (await run('npm', ['config', 'get', 'registry'])).stdout.trim();

  return {
    async build(target) {
      const args = { BUILD_BASE: await bases.builds(), RUN_BASE: await bases.runs(), NPM_CONFIG_REGISTRY: registry };
      const tag = `localhost/plumbline-${target}`;
      await buildah(
        ...['build', '--isolation=chroot', '--pull-never', '--timestamp=0', '--layers'],
        ...['--target', target, '--tag', tag],
        ...Object.entries(args).flatMap(([name, value]) => ['--build-arg', `${name}=${value}`]),
        root,
      );
      const found = JSON.parse(await buildah('inspect', '--type=image', tag)) as Inspected;
      return { id: found.FromImageID, digest: found.FromImageDigest, config: found.OCIv1.config };
    },
    async start({ id, config }, ...args) {
      const container = await buildah('from', '--pull-never', id);
      try {
        return await buildah('run', '--isolation=chroot', container, '--', ...(config.Entrypoint ?? []), ...args);
      } finally {
        await buildah('rm', container);
      }
    },
    async unpack({ id }, target) {
      await mkdir(target, { recursive: true });
      const container = await buildah('from', '--pull-never', id);
      await run('cp', ['-a', `${await buildah('mount', container)}/.`, target]);
      await buildah('rm', container);
    },
    async close() {
      // Overlays that are mounted would keep the folder.
      await buildah('umount', '--all').catch(() => undefined);
      await rm(directory, { recursive: true, force: true });
    },
  };
}

type Buildah = (...args: string[]) => Promise<string>;

/** Overlays cost a fraction of copies, where the file system can have them. */
async function driverFor(places: readonly string[]): Promise<string> {
  const works = await run('buildah', [...places, '--storage-driver', 'overlay', 'from', 'scratch']).then(
    () => true,
    () => false,
  );
  return works ? 'overlay' : 'vfs';
}

function createBases(directory: string, buildah: Buildah) {
  const importTree = async (name: string, tree: string): Promise<string> => {
    await run('tar', ['-C', tree, '--exclude=./dev/*', '-cf', join(directory, 'base.tar'), '.']);
    await rm(tree, { recursive: true });
    const file = join(directory, 'Dockerfile.base');
    await writeFile(file, 'FROM scratch\nADD base.tar /\n');
    await buildah('build', '--isolation=chroot', '--timestamp=0', '--tag', name, '--file', file, directory);
    await rm(join(directory, 'base.tar'));
    return name;
  };
  const debian = async (tree: string, variant: string, packages: readonly string[]) => {
    const options = (await aptOptions()).map((option) => `--aptopt=${option}`);
    const what = ['--quiet', `--variant=${variant}`, `--include=${packages.join(',')}`];
    await run('mmdebstrap', [...what, ...options, await debianSuite(), tree, ...(await debianSources())]);
  };
  return {
    async builds(): Promise<string> {
      const tree = join(directory, 'build');
      await debian(tree, 'apt', BUILD_PACKAGES);
      await addNpm(tree);
      return importTree('localhost/build-base:1', tree);
    },
    async runs(): Promise<string> {
      const tree = join(directory, 'runs');
      await debian(tree, 'extract', RUN_PACKAGES);
      // Where the Dockerfile's own base has it.
      await mkdir(join(tree, 'nodejs/bin'), { recursive: true });
      await cp(process.execPath, join(tree, 'nodejs/bin/node'));
      return importTree('localhost/run-base:1', tree);
    },
  };
}

/** Node.js and npm of this machine on the PATH of a tree, trusting what this machine trusts. */
async function addNpm(tree: string): Promise<void> {
  await cp(process.execPath, join(tree, 'usr/local/bin/node'));
  const npm = dirname(dirname(await realpath((await run('which', ['npm'])).stdout.trim())));
  await cp(npm, join(tree, 'usr/local/lib/npm'), { recursive: true });
  // Whom this machine trusts beyond Node.js' own list, the build must trust too.
  const authorities = process.env['NODE_EXTRA_CA_CERTS'];
  if (authorities !== undefined) await writeFile(join(tree, 'etc/extra-authorities.pem'), await readFile(authorities));
  const trust = authorities === undefined ? '' : 'NODE_EXTRA_CA_CERTS=/etc/extra-authorities.pem ';
  const script = `#!/bin/sh\n${trust}exec node /usr/local/lib/npm/bin/npm-cli.js "$@"\n`;
  await writeFile(join(tree, 'usr/local/bin/npm'), script, { mode: 0o755 });
}
