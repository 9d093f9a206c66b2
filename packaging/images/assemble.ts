import { execFileSync } from 'node:child_process';
import { cp, mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import packageJson from '../../package.json' with { type: 'json' };
import { billOf, type Lock, licensesOf, type ShippedPackage } from '../sbom.ts';

interface Contents {
  readonly bundles: readonly string[];
  readonly native?: boolean;
  readonly gate?: boolean;
}

export const IMAGES: Readonly<Record<string, Contents>> = {
  webhook: { bundles: ['webhook.cjs', 'kubeconfig.cjs'] },
  'scheduler-plugin': { bundles: ['scheduler-plugin.cjs', 'kubeconfig.cjs'] },
  console: { bundles: ['console.cjs', 'kubeconfig.cjs', 'console'] },
  // The gate is static: the agent copies it to the node, whose C library may be a different one.
  'node-agent': { bundles: ['node-agent.cjs', 'kubeconfig.cjs'], native: true, gate: true },
};

const ARCHITECTURES = ['x64', 'arm64'] as const;
type Architecture = (typeof ARCHITECTURES)[number];

/** The architecture with this name in images (`amd64`) or in Node.js (`x64`); undefined for any other name. */
export function architectureOf(name: string): Architecture | undefined {
  return name === 'amd64' ? 'x64' : ARCHITECTURES.find((architecture) => architecture === name);
}

const koffiPackages = (architecture: Architecture) => ['koffi', `@koromix/koffi-linux-${architecture}`] as const;

/** By path: the npm packages in its bundles (`dist/inputs.json`), and koffi. @throws Error if the lock file lacks one */
async function packagesOf(
  { bundles, native = false }: Contents,
  { root, dist, architecture }: Sources,
): Promise<readonly ShippedPackage[]> {
  const inputs = JSON.parse(await readFile(join(dist, 'inputs.json'), 'utf8')) as Record<string, readonly string[]>;
  const { packages } = JSON.parse(await readFile(join(root, 'package-lock.json'), 'utf8')) as Lock;
  const files = Object.entries(inputs)
    .filter(([bundle]) => bundles.some((other) => bundle === other || bundle.startsWith(`${other}/`)))
    .flatMap(([, of]) => of);
  const paths = new Set(files.flatMap((file) => packageFolder(file) ?? []));
  if (native) for (const name of koffiPackages(architecture)) paths.add(`node_modules/${name}`);
  return [...paths].sort().map((path) => {
    const locked = packages[path];
    if (locked === undefined) throw new Error(`${path}: package-lock.json does not have it; run npm install`);
    return [path, locked] as const;
  });
}

/** `node_modules/a/node_modules/@b/c/index.js` is in `node_modules/a/node_modules/@b/c`; undefined outside packages. */
function packageFolder(file: string): string | undefined {
  return /^(?:.*\/)?node_modules\/(?:@[^/]+\/)?[^/]+(?=\/)/.exec(file)?.[0];
}

interface Sources {
  readonly root: string;
  readonly dist: string;
  readonly architecture: Architecture;
  /** The node_modules that contains koffi's module for the architecture. */
  readonly modules: string;
}

/** Writes an image's files into a folder, and its bill of materials to `<folder>.cdx.json`. @throws Error ENOENT */
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
  const bill = `${JSON.stringify(billOf(`plumbline-${name}`, packageJson.version, packages), undefined, 2)}\n`;
  await writeFile(join(home, 'sbom.cdx.json'), bill);
  await writeFile(`${out}.cdx.json`, bill);
}

/** Cross compilers by Debian's names. They link their C library statically. */
const CROSS_COMPILERS: Readonly<Record<Architecture, string>> = {
  x64: 'x86_64-linux-gnu-gcc',
  arm64: 'aarch64-linux-gnu-gcc',
};

async function addGate(directory: string, { root, dist, architecture }: Sources): Promise<void> {
  if (architecture === process.arch) return cp(join(dist, 'plumbline-gate'), join(directory, 'plumbline-gate'));
  const compiler = CROSS_COMPILERS[architecture];
  execFileSync(compiler, ['-dumpversion'], { stdio: 'ignore' });
  const args = ['-s', '-C', join(root, 'native/cni'), `OUT=${directory}`, `CC=${compiler}`];
  execFileSync('make', args, { stdio: 'inherit' });
}

/** Koffi's JavaScript and its module for the architecture's glibc, without sources and other platforms' modules. */
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
