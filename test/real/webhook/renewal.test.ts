import assert from 'node:assert/strict';
import { rename, writeFile } from 'node:fs/promises';
import { setTimeout as delay } from 'node:timers/promises';
import { type CertificateAuthority, createCertificateAuthority } from '../../../sandbox/certificates.ts';
import { needs } from '../../support/parts.ts';
import { until } from '../../support/until.ts';
import { type InstalledWebhook, installWebhook } from './installed.ts';

const ROUNDS = 15;
const CONFIGURATIONS = '/apis/admissionregistration.k8s.io/v1/';

/** Reloading is debounced; a pair must stay longer to be noticed. */
const SETTLED = 300;

describe('the webhook behind a real API server: renewal', function () {
  needs('controlPlane');
  this.timeout(300_000);
  let installed: InstalledWebhook;
  before(async () => {
    installed = await installWebhook();
  });
  after(() => installed?.stop());

  const issue = async (authority: CertificateAuthority) => {
    const { cert, key } = authority.issue(['127.0.0.1']);
    for (const [path, text] of [
      [installed.certFile, cert],
      [installed.keyFile, key],
    ] as const) {
      await writeFile(`${path}.new`, text);
      await rename(`${path}.new`, path);
    }
  };
  /** As cert-manager's CA injector does. */
  const trust = async (...authorities: readonly CertificateAuthority[]) => {
    const caBundle = Buffer.from(authorities.map(({ cert }) => cert).join('\n')).toString('base64');
    for (const name of [
      'mutatingwebhookconfigurations/plumbline-webhook',
      'mutatingwebhookconfigurations/plumbline-opt-in',
      'validatingwebhookconfigurations/plumbline-webhook',
    ]) {
      const { webhooks } = (await installed.plane.client.get(CONFIGURATIONS + name)) as { webhooks: unknown[] };
      const patch = webhooks.map((_, index) => ({
        op: 'replace',
        path: `/webhooks/${index}/clientConfig/caBundle`,
        value: caBundle,
      }));
      await installed.plane.client.patch(CONFIGURATIONS + name, 'application/json-patch+json', patch);
    }
  };
  const pod = {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { generateName: 'app-', annotations: { 'plumbline.dev/align': 'whole-cores' } },
    spec: { containers: [{ name: 'c', image: 'none', resources: { limits: { cpu: '3', memory: '1Gi' } } }] },
  };
  const admit = async () => {
    const query = { dryRun: 'All' };
    const { spec } = (await installed.plane.client.create('/api/v1/namespaces/default/pods', pod, { query })) as {
      spec: { containers: { resources: { limits: { cpu: string } } }[] };
    };
    return spec.containers[0]?.resources.limits.cpu;
  };

  it('W15: certificates and the CA change under load, and no pod is refused', async () => {
    const running = new AbortController();
    const failures: string[] = [];
    let admitted = 0;
    const load = async () => {
      while (!running.signal.aborted) {
        const cpu = await admit().catch((error: Error) => error.message);
        if (cpu === '4') admitted++;
        else failures.push(`${cpu}`);
      }
    };
    const loads = Promise.all([load(), load(), load(), load()]);
    for (let round = 0; round < ROUNDS; round++) {
      await issue(installed.authority);
      await delay(round % 3 === 0 ? SETTLED : 20);
    }
    const successor = createCertificateAuthority('plumbline-webhook, renewed');
    await trust(installed.authority, successor);
    // The API server uses the bundle a moment later; until then a certificate of the new CA would be refused.
    await delay(2000);
    await issue(successor);
    await delay(SETTLED);
    await trust(successor);
    await delay(2000);
    running.abort();
    await loads;
    assert.deepEqual([...new Set(failures)], []);
    assert.ok(admitted > 100, `only ${admitted} pods`);
    // The bundle is checked: nothing is admitted with a foreign one. (That of the first CA would find kept
    // connections.)
    await trust(createCertificateAuthority('stranger'));
    await until('the CA of a stranger to be refused', () =>
      admit().then(
        () => false,
        ({ message }: Error) => /unknown authority/.test(message),
      ),
    );
  });
});
