import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Architecture, Contents } from './contents.ts';

/** An npm package that is in an image. */
export interface Package {
  readonly name: string;
  readonly version: string;
  /** As package-lock.json has it: `sha512-` and base64. */
  readonly integrity: string | undefined;
  /** SPDX expression. */
  readonly license: string | undefined;
  /** Its folder below the repository's root. */
  readonly path: string;
}

interface LockFile {
  readonly packages: Readonly<
    Record<string, { readonly version?: string; readonly integrity?: string; readonly license?: string }>
  >;
}

/**
 * The npm packages that an image contains: those with a file in one of its bundles, as `dist/inputs.json` lists them, and
 * koffi, which is not bundled. Ascending by path.
 * @throws Error if package-lock.json does not know one
 */
export async function packagesOf(
  { bundles, native = false }: Contents,
  { root, dist, architecture }: { readonly root: string; readonly dist: string; readonly architecture: Architecture },
): Promise<readonly Package[]> {
  const inputs = JSON.parse(await readFile(join(dist, 'inputs.json'), 'utf8')) as Record<string, readonly string[]>;
  const { packages } = JSON.parse(await readFile(join(root, 'package-lock.json'), 'utf8')) as LockFile;
  const files = Object.entries(inputs)
    .filter(([bundle]) => bundles.some((one) => bundle === one || bundle.startsWith(`${one}/`)))
    .flatMap(([, of]) => of);
  const paths = new Set(files.flatMap((file) => packageFolder(file) ?? []));
  if (native) for (const name of koffiPackages(architecture)) paths.add(`node_modules/${name}`);
  return [...paths].sort().map((path) => {
    const locked = packages[path];
    if (locked?.version === undefined) throw new Error(`${path}: package-lock.json does not have it; run npm install`);
    const name = path.slice(path.lastIndexOf('node_modules/') + 'node_modules/'.length);
    return { name, version: locked.version, integrity: locked.integrity, license: locked.license, path };
  });
}

/** koffi, and the package with its module for one architecture. */
export const koffiPackages = (architecture: Architecture): readonly string[] => [
  'koffi',
  `@koromix/koffi-linux-${architecture}`,
];

/** `node_modules/a/node_modules/@b/c/index.js` is in `node_modules/a/node_modules/@b/c`; undefined outside packages. */
function packageFolder(file: string): string | undefined {
  return /^(?:.*\/)?node_modules\/(?:@[^/]+\/)?[^/]+(?=\/)/.exec(file)?.[0];
}
