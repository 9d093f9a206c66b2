import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { createCertificateAuthority } from '../../sandbox/certificates.ts';
import { tempDirectories, writeTree } from '../support/files.ts';
import { needs } from '../support/parts.ts';

const DAY_MS = 86_400_000;
const NAMES = ['plumbline-webhook.plumbline-system.svc', '127.0.0.1', '::1'];

describe('OpenSSL, about the certificates of the sandbox,', () => {
  needs('openssl');
  const temp = tempDirectories();
  let folder: string;

  before(() => {
    folder = temp();
    const authority = createCertificateAuthority('some, "authority"');
    writeTree(folder, {
      'ca.crt': authority.cert,
      'other-ca.crt': createCertificateAuthority('other').cert,
      'now.crt': authority.issue(NAMES).cert,
      'past.crt': authority.issue(NAMES, { days: 1, now: Date.now() - 2 * DAY_MS }).cert,
      'future.crt': authority.issue(NAMES, { now: Date.now() + DAY_MS }).cert,
    });
  });

  const openssl = (...args: readonly string[]) => {
    const { stdout, stderr } = spawnSync('openssl', args, { cwd: folder, encoding: 'utf8' });
    return stdout + stderr;
  };

  for (const [label, options, message, certificate = 'now.crt'] of [
    ['accepts a server by its DNS name', `-purpose sslserver -verify_hostname ${NAMES[0]}`, 'now.crt: OK'],
    ['accepts a server by its IPv4 address', `-purpose sslserver -verify_ip ${NAMES[1]}`, 'now.crt: OK'],
    ['accepts a server by its IPv6 address', `-purpose sslserver -verify_ip ${NAMES[2]}`, 'now.crt: OK'],
    ['accepts a client', '-purpose sslclient', 'now.crt: OK'],
    ['refuses another name', '-verify_hostname other.svc', 'hostname mismatch'],
    ['refuses a certificate of the past', '-x509_strict', 'certificate has expired', 'past.crt'],
    ['refuses a certificate of the future', '-x509_strict', 'certificate is not yet valid', 'future.crt'],
    ['refuses another authority', '-CAfile other-ca.crt', 'unable to get local issuer certificate'],
  ] as const) {
    it(label, () => {
      const result = openssl('verify', '-x509_strict', '-CAfile', 'ca.crt', ...options.split(' '), certificate);
      assert.ok(result.includes(message), result);
    });
  }
  it('sees keys on P-256', () => {
    assert.match(openssl('x509', '-in', 'now.crt', '-noout', '-text'), /NIST CURVE: P-256/);
  });
});
