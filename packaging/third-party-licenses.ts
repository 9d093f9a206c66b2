import { readdir, readFile } from 'node:fs/promises';
import { join, relative } from 'node:path';
import { type Lock, shippedPackages } from './bill-of-materials.ts';

/**
 * The licenses of every package that may be in a bundle.
 * @param root the repository's root, with node_modules installed
 */
export async function thirdPartyLicenses(root: string): Promise<string> {
  const lock = JSON.parse(await readFile(join(root, 'package-lock.json'), 'utf8')) as Lock;
  return licensesOf(
    shippedPackages(lock).map(([path]) => path),
    [root],
  );
}

/**
 * The licenses of some packages, each text once, under the names of its packages: the licenses require their texts to
 * be distributed.
 * @param paths of the packages, starting with `node_modules/`
 * @param roots folders that contain node_modules; the first with a package is used
 */
export async function licensesOf(paths: readonly string[], roots: readonly string[]): Promise<string> {
  const names = new Map<string, string[]>();
  for (const path of paths) {
    const texts = await Promise.all(roots.map((root) => licenseIn(join(root, path))));
    const text = texts.find((one) => one !== undefined);
    // A module for another platform is not installed.
    if (text !== undefined) names.set(text, [...(names.get(text) ?? []), relative('node_modules', path)]);
  }
  return [...names].map(([text, of]) => `${of.join(', ')}\n\n${text}\n`).join(`\n${'-'.repeat(80)}\n\n`);
}

async function licenseIn(folder: string): Promise<string | undefined> {
  const entries = await readdir(folder).catch(() => [] as string[]);
  const file = entries.find((name) => /^(licen[cs]e|copying)/i.test(name));
  return file === undefined ? undefined : (await readFile(join(folder, file), 'utf8')).trim();
}
