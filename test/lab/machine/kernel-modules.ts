import { copyFile, mkdir, readdir } from 'node:fs/promises';
import { dirname, join, relative } from 'node:path';
import { execute } from './commands.ts';

/**
 * Puts the named modules and their dependencies into the guest's root.
 * @param unpacked the kernel's package, unpacked
 * @throws Error if the kernel has no such module
 */
export async function installModules(
  unpacked: string,
  root: string,
  version: string,
  names: readonly string[],
): Promise<void> {
  const from = join(unpacked, 'usr/lib/modules', version);
  const to = join(root, 'usr/lib/modules', version);
  // modprobe searches below lib/, where the package has nothing.
  await execute('depmod', ['-b', join(unpacked, 'usr'), version]);
  await mkdir(to, { recursive: true });
  for (const file of (await readdir(from)).filter((name) => /^modules\.(builtin|order)/.test(name))) {
    await copyFile(join(from, file), join(to, file));
  }
  for (const file of await filesOf(join(unpacked, 'usr'), version, names)) {
    const target = join(to, relative(from, file));
    await mkdir(dirname(target), { recursive: true });
    await copyFile(file, target);
    // The emulated kernel would take long for it.
    if (target.endsWith('.xz')) await execute('xz', ['-d', target]);
  }
  await execute('depmod', ['-b', join(root, 'usr'), version]);
}

/** The files of modules and their dependencies, in the order of loading. */
export async function filesOf(root: string, version: string, names: readonly string[]): Promise<readonly string[]> {
  const files = new Set<string>();
  for (const name of names) {
    const lines = await execute('modprobe', ['-d', root, '-S', version, '--show-depends', name]);
    for (const [, file] of lines.matchAll(/^insmod (\S+)/gm)) files.add(file!);
  }
  return [...files];
}
