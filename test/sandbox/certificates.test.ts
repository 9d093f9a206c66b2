import assert from 'node:assert/strict';
import { X509Certificate } from 'node:crypto';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { connect, createServer } from 'node:tls';
import { createCertificateAuthority } from '../../sandbox/certificates.ts';

const NAMES = ['webhook.plumbline-system.svc', 'localhost', '127.0.0.1', '::1', '2001:db8::1:2'];

describe('sandbox certificates', () => {
  const ca = createCertificateAuthority('sandbox-ca');
  const issued = ca.issue(NAMES);

  for (const name of NAMES) {
    it(`name ${name}`, () => {
      const leaf = new X509Certificate(issued.cert);
      assert.notEqual(/^[\d.]+$|:/.test(name) ? leaf.checkIP(name) : leaf.checkHost(name), undefined);
    });
  }

  it('are valid for the given days', () => {
    const now = Date.UTC(2026, 0, 1);
    const leaf = new X509Certificate(createCertificateAuthority('ca', { days: 2, now }).issue(['a']).cert);
    assert.equal(Date.parse(leaf.validTo) - now, 2 * 86_400_000);
  });

  for (const [what, servername, trusted, code] of [
    ['the right name with the right CA', 'localhost', ca.cert, undefined],
    ['a name that is not in the certificate', 'example.com', ca.cert, 'ERR_TLS_CERT_ALTNAME_INVALID'],
    ['another CA', 'localhost', createCertificateAuthority('other').cert, 'UNABLE_TO_VERIFY_LEAF_SIGNATURE'],
  ] as const) {
    it(`TLS handshake: ${what}`, async () => {
      const server = createServer({ ...issued }, (socket) => socket.on('error', () => {}).end('hello')).listen(
        0,
        '127.0.0.1',
      );
      await once(server, 'listening');
      const { port } = server.address() as AddressInfo;
      const socket = connect({ port, host: '127.0.0.1', servername, ca: trusted });
      const outcome = await new Promise<string | undefined>((resolve) => {
        socket.once('secureConnect', () => resolve(undefined));
        socket.once('error', (error: NodeJS.ErrnoException) => resolve(error.code));
      });
      socket.destroy();
      server.close();
      assert.equal(outcome, code);
    });
  }

  it('need a name', () => {
    assert.throws(() => ca.issue([]), RangeError);
  });
});
