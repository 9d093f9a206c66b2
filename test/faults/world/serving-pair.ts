import type { CertificateAuthority } from '../../../sandbox/certificates.ts';
import { mountSecret } from '../../support/mounted-secret.ts';

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
