import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { X509Certificate } from 'node:crypto';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { root } from '../../support/bundles.ts';
import { type ControlPlane, namespaceOf, onControlPlane, startControlPlane } from '../control-plane-stage.ts';
import { DEFINITIONS } from './foreign-definitions-fixture.ts';
import { kubectlEnvironment, objectsOf, render } from './rendered-fixture.ts';

const SCRIPT = join(root, 'manifests/overlays/development/certificates.sh');
const SECRETS = '/api/v1/namespaces/plumbline-system/secrets';
const DAY = 86_400_000;
const WEBHOOK = 'plumbline-webhook';

interface Secret {
  readonly data: Readonly<Record<string, string>>;
}

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

  const run = (...args: readonly string[]) => {
    execFileSync(SCRIPT, args, { env: kubectlEnvironment(plane.adminKubeconfig), stdio: ['ignore', 'ignore', 'pipe'] });
  };
  const certificate = async (name: string, field = 'tls.crt') => {
    const { data } = (await plane.client.get(`${SECRETS}/${name}`)) as Secret;
    return new X509Certificate(Buffer.from(data[field] ?? '', 'base64'));
  };

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
    const { data } = (await plane.client.get(`${SECRETS}/plumbline-ca`)) as Secret;
    const old = await certificate('plumbline-webhook-tls');
    const authority = await certificate('plumbline-ca');
    // One that has less than three years left.
    const pem = (field: string) => Buffer.from(data[field] ?? '', 'base64').toString();
    const keyFile = join(plane.directory, 'authority.key');
    await writeFile(keyFile, pem('tls.key'), { mode: 0o600 });
    const request = ['req', '-x509', '-new', '-key', keyFile, '-sha256', '-days', '400', '-subj', '/CN=plumbline-ca'];
    const short = execFileSync('openssl', request, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] });
    const shortLived = { 'tls.crt': Buffer.from(short).toString('base64') };
    await plane.client.patch(`${SECRETS}/plumbline-ca`, 'application/merge-patch+json', { data: shortLived });
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
