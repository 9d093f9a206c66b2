import { readdir, readFile } from 'node:fs/promises';
import { join, relative } from 'node:path';

interface LockFile {
  readonly packages: Readonly<Record<string, { readonly dev?: boolean; readonly devOptional?: boolean }>>;
}

/**
 * The terms of every package that may be in a bundle, each text once, under the names of the packages that have it.
 * @param root the repository's, with node_modules installed
 */
export async function thirdPartyLicenses(root: string): Promise<string> {
  const { packages } = JSON.parse(await readFile(join(root, 'package-lock.json'), 'utf8')) as LockFile;
  const names = new Map<string, string[]>();
  for (const [path, { dev, devOptional }] of Object.entries(packages)) {
    if (path === '' || dev || devOptional) continue;
    // A module for another platform is not installed.
    const entries = await readdir(join(root, path)).catch(() => [] as string[]);
    const file = entries.find((name) => /^(licen[cs]e|copying)/i.test(name));
    if (file === undefined) continue;
    const text = (await readFile(join(root, path, file), 'utf8')).trim();
    names.set(text, [...(names.get(text) ?? []), relative('node_modules', path)]);
  }
  return [...names].map(([text, of]) => `${of.join(', ')}\n\n${text}\n`).join(`\n${'-'.repeat(80)}\n\n`);
}
