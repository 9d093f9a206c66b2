import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { buildCli, plumbline } from '../../cli/run.ts';
import { type Spoken, spoken } from '../../cli/spoken.ts';
import { needs, skipFor } from '../../support/parts.ts';
import { until } from '../../support/until.ts';
import type { KubernetesObject } from '../control-plane.ts';
import { type Stage, startStage, topologyOf } from '../scheduler/stage.ts';
import { grantRoles } from './role-of-guide.ts';

/** Of TEST-NET-2: the API server's proxy goes to no loopback address. */
const ADDRESS = '198.51.100.71';
const SYSTEM = 'plumbline-system';
const ip = (...args: string[]) => execFileSync('ip', args, { stdio: 'pipe' });

const SERVICE: KubernetesObject = {
  apiVersion: 'v1',
  kind: 'Service',
  metadata: { name: 'plumbline-scheduler-plugin', namespace: SYSTEM },
  spec: { ports: [{ name: 'https', port: 443, targetPort: 'https' }] },
};

/** The replica's, as a kubelet would report it. */
const POD: KubernetesObject = {
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name: 'replica-1', namespace: SYSTEM },
  spec: { nodeName: 'full', containers: [{ name: 'extender', image: 'x' }] },
};
const MERGE = 'application/merge-patch+json';

/** `explain` has the extender's own answer: through the API server's proxy, as the Service leads there. */
describe('explain with the extender’s answer, through a real API server', function () {
  needs('controlPlane');
  needs('netns');
  this.timeout(300_000);
  let stage: Stage;
  let user: string;
  let added = false;

  before(async function () {
    try {
      ip('address', 'add', `${ADDRESS}/32`, 'dev', 'lo');
      added = true;
    } catch {
      return skipFor({ name: 'an address that this process may add', install: 'run as root' }, this);
    }
    buildCli();
    stage = await startStage();
    await stage.addNodes([
      {
        name: 'full',
        topology: topologyOf({ assignments: [{ podUID: 'x', container: 'compute', cpus: '1-7,9-15' }] }),
      },
      { name: 'unreported' },
    ]);
    await stage.plane.create(SERVICE, {
      apiVersion: 'v1',
      kind: 'ServiceAccount',
      metadata: { name: 'user', namespace: 'default' },
    });
    await grantRoles(stage.plane, 'user');
    user = await stage.plane.kubeconfig('user', await stage.plane.serviceAccountToken('default', 'user'));
    await stage.plane.create(POD);
    await stage.plane.client.patch(`/api/v1/namespaces/${SYSTEM}/pods/${POD.metadata.name}/status`, MERGE, {
      status: { podIP: ADDRESS, podIPs: [{ ip: ADDRESS }] },
    });
    const replica = await stage.startReplica({
      // The API server's proxy has no client certificate for what it leads to.
      args: ['--host', ADDRESS, '--pod-ip', ADDRESS, '--client-ca-file', ''],
    });
    await until('the replica to be active', () => replica.isActive());
    await stage.addPod({ name: 'waits', cpu: '4' });
  });
  after(async () => {
    if (added) ip('address', 'del', `${ADDRESS}/32`, 'dev', 'lo');
    await stage?.stop();
  });

  const explained = async (kubeconfig: string): Promise<Spoken> => {
    const { status, stdout, stderr } = await plumbline(['explain', 'pod', 'waits', '-o', 'json'], { kubeconfig });
    assert.equal(stderr, '');
    assert.equal(status, 0);
    return spoken(stdout);
  };

  for (const [who, kubeconfig] of [
    ['an administrator', () => stage.plane.adminKubeconfig],
    ['a user with the roles of the guide', () => user],
  ] as const) {
    it(`${who} gets the extender’s answer for each node`, async () => {
      const { source, nodes, notes } = await explained(kubeconfig());
      assert.equal(source, 'extender');
      const found = nodes.map(({ text, nodes: names }) => `${names}: ${text}`).sort();
      assert.deepEqual(found, ['full: too few free whole cores', 'unreported: would take it']);
      assert.deepEqual(notes, []);
    });
  }
});
