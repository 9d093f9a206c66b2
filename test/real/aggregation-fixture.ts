import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createCertificateAuthority } from '../../sandbox/certificates.ts';

/**
 * Flags of kube-apiserver for aggregated servers: its certificate, and how they verify it, as kubeadm configures it.
 * @param directory for its certificates
 */
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
