import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { cp, mkdir, readFile, realpath, rm, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';

const run = promisify(execFile);

/** Names of architectures in images: this machine's, and the other one. */
export const [HERE, THERE] = process.arch === 'x64' ? (['amd64', 'arm64'] as const) : (['arm64', 'amd64'] as const);
export type ImageArchitecture = typeof HERE | typeof THERE;

/** The packages of the build stage are already in the base: `apt-get install` has nothing to fetch. */
const BUILD_PACKAGES = [
  ...['ca-certificates', 'gcc', 'libc6-dev', 'libstdc++6', 'make', 'musl-tools'],
  ...(HERE === 'amd64'
    ? ['gcc-aarch64-linux-gnu', 'libc6-dev-arm64-cross']
    : ['gcc-x86-64-linux-gnu', 'libc6-dev-amd64-cross']),
];
/** The libraries of Node.js. */
const RUN_PACKAGES = ['libc6', 'libgcc-s1', 'libstdc++6'];

export type Buildah = (...args: string[]) => Promise<string>;

export interface Bases {
  builds(architecture: ImageArchitecture): Promise<string>;
  runs(architecture: ImageArchitecture): Promise<string>;
}

export function createBases(directory: string, buildah: Buildah): Bases {
  const made = new Map<string, Promise<string>>();
  const once = (name: string, make: (name: string) => Promise<void>): Promise<string> => {
    const known = made.get(name) ?? make(name).then(() => name);
    made.set(name, known);
    return known;
  };
  const importTree = async (name: string, tree: string, architecture: ImageArchitecture) => {
    await run('tar', ['-C', tree, '--exclude=./dev/*', '-cf', join(directory, 'base.tar'), '.']);
    await rm(tree, { recursive: true });
    const file = join(directory, 'Dockerfile.base');
    await writeFile(file, 'FROM scratch\nADD base.tar /\n');
    const how = ['--isolation=chroot', `--platform=linux/${architecture}`, '--timestamp=0', '--tag', name];
    await buildah('build', ...how, '--file', file, directory);
    await rm(join(directory, 'base.tar'));
  };
  const debian = async (
    tree: string,
    architecture: ImageArchitecture,
    variant: string,
    packages: readonly string[],
  ) => {
    const options = (await aptOptions()).map((option) => `--aptopt=${option}`);
    const what = [
      '--quiet',
      `--variant=${variant}`,
      `--architectures=${architecture}`,
      `--include=${packages.join(',')}`,
    ];
    await run('mmdebstrap', [...what, ...options, await debianSuite(), tree, ...(await debianSources())]);
  };
  const native = () =>
    once('localhost/build-base:1', async (name) => {
      const tree = join(directory, 'build');
      await debian(tree, HERE, 'apt', BUILD_PACKAGES);
      await addNpm(tree);
      await importTree(name, tree, HERE);
    });
  return {
    async builds(architecture) {
      const name = await native();
      if (architecture === HERE) return name;
      // buildah 1.28 ignores `FROM --platform` and accepts no base of another platform: the same layers, declared as
      // that platform.
      return once('localhost/build-base-there:1', async (other) => {
        const container = await buildah('from', '--pull-never', name);
        await buildah('config', '--arch', architecture, container);
        await buildah('commit', '--rm', '--timestamp=0', container, other);
      });
    },
    runs: (architecture) =>
      once(`localhost/run-base-${architecture}:1`, async (name) => {
        const tree = join(directory, `run-${architecture}`);
        await debian(tree, architecture, 'extract', RUN_PACKAGES);
        await addNode(tree, architecture, directory);
        await importTree(name, tree, architecture);
      }),
  };
}

/** Where the Dockerfile's base has it: this machine's, or the same major version for another architecture from npm. */
async function addNode(tree: string, architecture: ImageArchitecture, directory: string): Promise<void> {
  await mkdir(join(tree, 'nodejs/bin'), { recursive: true });
  const node = join(tree, 'nodejs/bin/node');
  if (architecture === HERE) return cp(process.execPath, node);
  const [major] = process.versions.node.split('.');
  const name = `node-linux-${architecture === 'amd64' ? 'x64' : architecture}@${major}`;
  const { stdout } = await run('npm', ['pack', '--silent', name], { cwd: directory });
  const archive = stdout.trim().split('\n').at(-1) ?? '';
  await run('tar', ['-C', directory, '-xzf', join(directory, archive), 'package/bin/node']);
  await cp(join(directory, 'package/bin/node'), node);
}

/** Node.js and npm of this machine on the PATH of a tree, with the trusted CAs of this machine. */
async function addNpm(tree: string): Promise<void> {
  await cp(process.execPath, join(tree, 'usr/local/bin/node'));
  const npm = dirname(dirname(await realpath((await run('which', ['npm'])).stdout.trim())));
  await cp(npm, join(tree, 'usr/local/lib/npm'), { recursive: true });
  // The build must also trust the CAs that this machine trusts beyond Node.js' own list.
  const authorities = process.env['NODE_EXTRA_CA_CERTS'];
  if (authorities !== undefined) await writeFile(join(tree, 'etc/extra-authorities.pem'), await readFile(authorities));
  const trust = authorities === undefined ? '' : 'NODE_EXTRA_CA_CERTS=/etc/extra-authorities.pem ';
  const script = `#!/bin/sh\n${trust}exec node /usr/local/lib/npm/bin/npm-cli.js "$@"\n`;
  await writeFile(join(tree, 'usr/local/bin/npm'), script, { mode: 0o755 });
}

async function debianSuite(): Promise<string> {
  const text = await readFile('/etc/os-release', 'utf8');
  return /^VERSION_CODENAME=(.*)$/m.exec(text)?.[1] ?? 'stable';
}

async function debianSources(): Promise<string[]> {
  return ['/etc/apt/sources.list.d/debian.sources', '/etc/apt/sources.list']
    .filter((path) => existsSync(path))
    .slice(0, 1);
}

async function aptOptions(): Promise<string[]> {
  const { stdout } = await run('apt-config', ['dump', 'Acquire']);
  return stdout
    .split('\n')
    .filter((line) => /^Acquire::(https?::Proxy|https?::CAInfo|Check-)/i.test(line) && !line.includes('""'));
}
