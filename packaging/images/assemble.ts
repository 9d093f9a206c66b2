import { execFileSync } from 'node:child_process';
import { cp, mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { billOf } from '../bill-of-materials.ts';
import { licensesOf } from '../third-party-licenses.ts';
import type { Architecture, Contents } from './contents.ts';
import { koffiPackages, packagesOf } from './packages.ts';

export interface Sources {
  readonly root: string;
  readonly dist: string;
  readonly architecture: Architecture;
  /** The node_modules that contains koffi's module for the architecture. */
  readonly modules: string;
}

/**
 * Writes the files that an image adds to its base into a folder, which it replaces, and the bill of materials next to
 * it as `<folder>.cdx.json`.
 * @throws Error with the code ENOENT if a bundle, koffi or the gate's compiler is missing
 */
export async function assemble(name: string, contents: Contents, out: string, sources: Sources): Promise<void> {
  const { root, dist } = sources;
  await rm(out, { recursive: true, force: true });
  const home = join(out, 'plumbline');
  await mkdir(home, { recursive: true });
  for (const file of contents.bundles) await cp(join(dist, file), join(home, file), { recursive: true });
  if (contents.gate) await addGate(home, sources);
  if (contents.native) await addKoffi(join(home, 'node_modules'), sources);
  const packages = await packagesOf(contents, sources);
  await cp(join(root, 'LICENSE'), join(home, 'LICENSE'));
  const paths = packages.map(([path]) => path);
  // A module for another architecture is in a separate folder.
  await writeFile(join(home, 'THIRD-PARTY-LICENSES'), await licensesOf(paths, [root, dirname(sources.modules)]));
  const { version } = JSON.parse(await readFile(join(root, 'package.json'), 'utf8')) as { version: string };
  const bill = `${JSON.stringify(billOf(`plumbline-${name}`, version, packages), undefined, 2)}\n`;
  await writeFile(join(home, 'sbom.cdx.json'), bill);
  await writeFile(`${out}.cdx.json`, bill);
}

/** Cross compilers by Debian's names. They link their C library statically. */
const CROSS_COMPILERS: Readonly<Record<Architecture, string>> = {
  x64: 'x86_64-linux-gnu-gcc',
  arm64: 'aarch64-linux-gnu-gcc',
};

async function addGate(directory: string, { root, dist, architecture }: Sources): Promise<void> {
  await mkdir(directory, { recursive: true });
  if (architecture === process.arch) {
    await cp(join(dist, 'plumbline-gate'), join(directory, 'plumbline-gate'));
    return;
  }
  const compiler = CROSS_COMPILERS[architecture];
  execFileSync(compiler, ['-dumpversion'], { stdio: 'ignore' });
  const args = ['-s', '-C', join(root, 'native/cni'), `OUT=${directory}`, `CC=${compiler}`];
  execFileSync('make', args, { stdio: 'inherit' });
}

/**
 * Adds koffi's JavaScript and its module for the architecture's glibc, without sources and other platforms' modules.
 */
async function addKoffi(target: string, { modules, architecture }: Sources): Promise<void> {
  const module = `linux_${architecture}/koffi.node`;
  const isWanted = (path: string) =>
    path === 'package.json' || path === 'index.js' || path === module || (/\.cjs$/.test(path) && !/^cnoke/.test(path));
  for (const name of koffiPackages(architecture)) {
    const source = join(modules, name);
    const files = (await readdir(source, { recursive: true })).filter(isWanted);
    for (const file of files) await cp(join(source, file), join(target, name, file));
  }
}
