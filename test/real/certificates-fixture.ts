import { writeFileSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type CertificateAuthority, createCertificateAuthority } from '../../sandbox/certificates.ts';

export async function writeCertificate(
  directory: string,
  name: string,
  authority: CertificateAuthority,
  names: readonly string[],
): Promise<readonly [certFile: string, keyFile: string]> {
  const { cert, key } = authority.issue(names);
  const [certFile, keyFile] = [join(directory, `${name}.crt`), join(directory, `${name}.key`)];
  await writeFile(certFile, cert);
  await writeFile(keyFile, key, { mode: 0o600 });
  return [certFile, keyFile];
}

/** Flags for aggregated servers, as kubeadm sets them. @param directory for its certificates */
export function aggregation(directory: string): string[] {
  const authority = createCertificateAuthority('front-proxy-ca');
  const { cert, key } = authority.issue(['front-proxy-client']);
  const file = (name: string, text: string) => {
    writeFileSync(join(directory, name), text, { mode: 0o600 });
    return join(directory, name);
  };
  return [
    ...['--requestheader-client-ca-file', file('front-proxy-ca.crt', authority.cert)],
    ...['--requestheader-allowed-names', 'front-proxy-client', '--requestheader-username-headers', 'X-Remote-User'],
    ...['--requestheader-group-headers', 'X-Remote-Group', '--requestheader-extra-headers-prefix', 'X-Remote-Extra-'],
    ...['--proxy-client-cert-file', file('front-proxy.crt', cert)],
    ...['--proxy-client-key-file', file('front-proxy.key', key)],
  ];
}
