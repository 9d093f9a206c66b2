import assert from 'node:assert/strict';
import { X509Certificate } from 'node:crypto';
import { createCertificateAuthority } from '../../sandbox/certificates.ts';

const NAMES = ['webhook.plumbline-system.svc', 'localhost', '127.0.0.1', '::1', '2001:db8::1:2'];

describe('sandbox certificates', () => {
  const issued = createCertificateAuthority('sandbox-ca').issue(NAMES);

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
});
