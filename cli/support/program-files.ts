import { realpathSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, dirname, join } from 'node:path';
import { getAsset, isSea } from 'node:sea';

/**
 * Whether this is the single executable (packaging/executable.ts), which contains Node.js and the command in one file.
 */
export const isExecutable = (): boolean => isSea();

/** The directory of the command's bundle and of other files from the build. */
export const bundleDirectory = (): string => dirname(realpathSync(process.argv[1] ?? '.'));

/**
 * Calls `use` with the directory of the web page's files: the one next to the bundle, or for the single executable a
 * private one, which is removed afterwards.
 */
export async function withPage<T>(use: (directory: string) => Promise<T>): Promise<T> {
  if (!isExecutable()) return use(join(bundleDirectory(), 'console'));
  const files = JSON.parse(getAsset('console', 'utf8')) as Readonly<Record<string, string>>;
  const directory = await mkdtemp(join(tmpdir(), 'plumbline-console-'));
  try {
    for (const [name, base64] of Object.entries(files)) {
      await writeFile(join(directory, basename(name)), Buffer.from(base64, 'base64'));
    }
    return await use(directory);
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
}
