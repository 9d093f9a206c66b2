import { mkdir, rename, rm, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { CertificateAuthority } from '../../../sandbox/certificates.ts';

/** A serving certificate in a folder, in the layout of a mounted Secret. */
export interface ServingPair {
  readonly args: readonly string[];
  /** Writes a new pair. */
  rotate(): Promise<void>;
}
export async function servingPair(
  directory: string,
  authority: CertificateAuthority,
  service: string,
): Promise<ServingPair> {
  const issue = () => {
    const { cert, key } = authority.issue([`${service}.plumbline-system.svc`, 'localhost', '127.0.0.1']);
    return { 'tls.crt': cert, 'tls.key': key };
  };
  const secret = await mountSecret(directory, issue());
  return {
    args: ['--cert-file', secret.path('tls.crt'), '--key-file', secret.path('tls.key')],
    rotate: () => secret.write(issue()),
  };
}

/** A Secret as the kubelet mounts it: files behind a link (`..data`) that is replaced in one step. */
interface MountedSecret {
  path(file: string): string;
  write(files: Readonly<Record<string, string>>): Promise<void>;
}
/** @param directory is created */
async function mountSecret(directory: string, first: Readonly<Record<string, string>>): Promise<MountedSecret> {
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
