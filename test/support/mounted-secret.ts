import { mkdir, rename, rm, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';

/** A Secret as the kubelet mounts it: files behind a link (`..data`) that is replaced in one step. */
export interface MountedSecret {
  path(file: string): string;
  write(files: Readonly<Record<string, string>>): Promise<void>;
}

/** @param directory is created */
export async function mountSecret(directory: string, first: Readonly<Record<string, string>>): Promise<MountedSecret> {
  let version = 0;
  const path = (file: string) => join(directory, file);
  const write = async (files: Readonly<Record<string, string>>) => {
    const before = `..${version}`;
    const folder = `..${++version}`;
    await mkdir(path(folder), { recursive: true });
    for (const [file, text] of Object.entries(files)) await writeFile(join(path(folder), file), text, { mode: 0o600 });
    await symlink(folder, path('..data_tmp'));
    await rename(path('..data_tmp'), path('..data'));
    await rm(path(before), { recursive: true, force: true });
  };
  await write(first);
  for (const file of Object.keys(first)) await symlink(join('..data', file), path(file));
  return { path, write };
}
