import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { createCertificateAuthority } from '../../../sandbox/certificates.ts';
import { root } from '../../support/bundles.ts';
import { deniedByPolicy } from '../../support/denied.ts';
import { needs } from '../../support/parts.ts';
import { until } from '../../support/until.ts';
import { callOf } from '../demo/webhook-configurations.ts';
import { freePort } from '../processes.ts';
import { configurations, switchOn } from './installed.ts';
import { type CreatedVmi, launcherFor, virtualMachineInstance } from './objects.ts';
import { installPolicies, type Policies } from './policies-alone.ts';

const run = promisify(execFile);
const PAGE = readFileSync(join(root, 'docs/reference/webhook.md'), 'utf8');
/** The commands of the page. */
const COMMANDS = PAGE.split('### Break glass')[1]?.split('```sh\n')[1]?.split('```')[0] ?? '';
const FULL = { 'kubevirt.io/CPUManagerPolicyBetaOptions': 'full-pcpus-only' };

describe('breaking glass as in docs/reference/webhook.md, on a real API server', function () {
  needs('controlPlane');
  needs('kubectl');
  this.timeout(300_000);
  let installed: Policies;
  before(async () => {
    installed = await installPolicies({});
    const { cert } = createCertificateAuthority('plumbline-webhook');
    const port = await freePort();
    await installed.plane.create({ apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'tenant' } });
    await switchOn(installed.plane);
    await installed.plane.create(...configurations().map((one) => callOf(one, port, cert)));
  });
  after(() => installed?.stop());

  const found = virtualMachineInstance('vm', { annotations: FULL });
  const vmi = { ...found, metadata: { ...found.metadata, uid: 'u' } } as CreatedVmi;
  const launcher = launcherFor(vmi, { cpu: '9' });
  const ordinary = {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { generateName: 'web-', namespace: 'tenant', annotations: { 'plumbline.dev/align': 'whole-cores' } },
    spec: { containers: [{ name: 'c', image: 'none' }] },
  };
  const thief = {
    ...ordinary,
    metadata: { generateName: 'thief-', namespace: 'tenant', annotations: { 'plumbline.dev/decision': '{}' } },
  };
  const create = async (pod: object) =>
    installed.client.create('/api/v1/namespaces/tenant/pods', pod, { query: { dryRun: 'All' } }).then(
      () => 'created',
      (error: Error) => error.message,
    );

  it('is one command', () => assert.equal(COMMANDS.trim().split('\n').length, 1, COMMANDS));

  it('lets launchers and pods that ask for something start, while the policies still apply', async () => {
    await until('the webhooks to be called', async () => /failed calling webhook/.test(await create(launcher)));
    assert.match(await create(ordinary), /failed calling webhook "opt-in/);
    await run('sh', ['-ec', COMMANDS], { env: { ...process.env, KUBECONFIG: installed.plane.adminKubeconfig } });
    await until('the launcher to start', async () => (await create(launcher)) === 'created');
    assert.equal(await create(ordinary), 'created');
    assert.match(await create(thief), deniedByPolicy('plumbline-reserved-names'));
  });
});
