import { mkdir, rename, rm, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { CertificateAuthority } from '../../../sandbox/certificates.ts';

/** A serving certificate in a folder, as a Secret is mounted: files behind a link that is swapped in one step. */
export interface ServingPair {
  readonly args: readonly string[];
  /** Puts a new pair there. */
  rotate(): Promise<void>;
}

export async function servingPair(
  directory: string,
  authority: CertificateAuthority,
  service: string,
): Promise<ServingPair> {
  const names = [`${service}.plumbline-system.svc`, 'localhost', '127.0.0.1'];
  let version = 0;
  const rotate = async () => {
    const { cert, key } = authority.issue(names);
    const before = `..${version}`;
    const folder = `..${++version}`;
    await mkdir(join(directory, folder), { recursive: true });
    await writeFile(join(directory, folder, 'tls.crt'), cert);
    await writeFile(join(directory, folder, 'tls.key'), key, { mode: 0o600 });
    await symlink(folder, join(directory, '..data_tmp'));
    await rename(join(directory, '..data_tmp'), join(directory, '..data'));
    await rm(join(directory, before), { recursive: true, force: true });
  };
  await rotate();
  for (const file of ['tls.crt', 'tls.key']) await symlink(join('..data', file), join(directory, file));
  return { args: ['--cert-file', join(directory, 'tls.crt'), '--key-file', join(directory, 'tls.key')], rotate };
}
