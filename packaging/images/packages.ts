import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Lock, LockedPackage } from '../bill-of-materials.ts';
import type { Architecture, Contents } from './contents.ts';

/**
 * The npm packages that an image contains, in ascending order of their paths: those with a file in one of its bundles,
 * as listed in `dist/inputs.json`, and koffi, which is not bundled.
 * @throws Error if package-lock.json does not contain one
 */
export async function packagesOf(
  { bundles, native = false }: Contents,
  { root, dist, architecture }: { readonly root: string; readonly dist: string; readonly architecture: Architecture },
): Promise<readonly (readonly [path: string, locked: LockedPackage])[]> {
  const inputs = JSON.parse(await readFile(join(dist, 'inputs.json'), 'utf8')) as Record<string, readonly string[]>;
  const { packages } = JSON.parse(await readFile(join(root, 'package-lock.json'), 'utf8')) as Lock;
  const files = Object.entries(inputs)
    .filter(([bundle]) => bundles.some((one) => bundle === one || bundle.startsWith(`${one}/`)))
    .flatMap(([, of]) => of);
  const paths = new Set(files.flatMap((file) => packageFolder(file) ?? []));
  if (native) for (const name of koffiPackages(architecture)) paths.add(`node_modules/${name}`);
  return [...paths].sort().map((path) => {
    const locked = packages[path];
    if (locked === undefined) throw new Error(`${path}: package-lock.json does not have it; run npm install`);
    return [path, locked] as const;
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
