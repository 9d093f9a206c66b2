import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { X509Certificate } from 'node:crypto';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type ControlPlane, namespaceOf, onControlPlane, startControlPlane } from '../control-plane-stage.ts';
import { DEFINITIONS } from './foreign-definitions-fixture.ts';
import { createCertificates, objectsOf, readSecret, render, secretPath } from './rendered-fixture.ts';

const DAY = 86_400_000;
const WEBHOOK = 'plumbline-webhook';

describe('the certificates of the development overlay', function () {
  onControlPlane(this);
  let plane: ControlPlane;

  before(async () => {
    plane = await startControlPlane();
    await plane.create(
      namespaceOf('plumbline-system'),
      ...DEFINITIONS,
      ...objectsOf(render('overlays/development')).filter(({ kind }) => kind.endsWith('WebhookConfiguration')),
    );
  });
  after(() => plane?.stop());

  const run = (...args: readonly string[]) => createCertificates(plane, ...args);
  const certificate = async (name: string, field = 'tls.crt') =>
    new X509Certificate((await readSecret(plane, name))(field));

  it('come from one authority, which a second run of the script keeps while it renews them', async () => {
    run();
    const authority = await certificate('plumbline-ca');
    const first = await certificate('plumbline-webhook-tls');
    assert.ok(authority.ca);
    assert.ok(Date.parse(authority.validTo) - Date.now() > 3600 * DAY);
    run();
    const kept = await certificate('plumbline-ca');
    assert.equal(kept.fingerprint256, authority.fingerprint256);
    const renewed = await certificate('plumbline-webhook-tls');
    assert.notEqual(renewed.serialNumber, first.serialNumber);
    assert.ok(renewed.verify(authority.publicKey) && renewed.checkIssued(authority));
    assert.ok(!renewed.ca);
    const copied = await certificate(`${WEBHOOK}-tls`, 'ca.crt');
    assert.equal(copied.fingerprint256, authority.fingerprint256);
    assert.equal(renewed.checkHost(`${WEBHOOK}.plumbline-system.svc`), `${WEBHOOK}.plumbline-system.svc`);
    assert.deepEqual(renewed.keyUsage, ['1.3.6.1.5.5.7.3.1'], 'server authentication alone');
  });

  it('verify against the old and the new authority when the authority is renewed', async () => {
    run();
    const secret = await readSecret(plane, 'plumbline-ca');
    const old = await certificate('plumbline-webhook-tls');
    const authority = await certificate('plumbline-ca');
    // One that has less than three years left.
    const keyFile = join(plane.directory, 'authority.key');
    await writeFile(keyFile, secret('tls.key'), { mode: 0o600 });
    const request = ['req', '-x509', '-new', '-key', keyFile, '-sha256', '-days', '400', '-subj', '/CN=plumbline-ca'];
    const short = execFileSync('openssl', request, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] });
    const shortLived = { 'tls.crt': Buffer.from(short).toString('base64') };
    await plane.client.patch(secretPath('plumbline-ca'), 'application/merge-patch+json', { data: shortLived });
    run();
    const successor = await certificate('plumbline-ca');
    assert.ok(Date.parse(successor.validTo) - Date.now() > 3600 * DAY);
    assert.notEqual(successor.fingerprint256, authority.fingerprint256);
    const renewed = await certificate('plumbline-webhook-tls');
    for (const one of [old, renewed]) {
      for (const ca of [authority, new X509Certificate(short), successor])
        assert.ok(one.checkIssued(ca) && one.verify(ca.publicKey));
    }
  });
});
