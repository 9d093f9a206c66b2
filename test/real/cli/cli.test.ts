import assert from 'node:assert/strict';
import { REPORT } from '../../cli/cluster-fixture.ts';
import { buildCli, plumbline } from '../../cli/run.ts';
import { spoken } from '../../cli/spoken.ts';
import { needs } from '../../support/parts.ts';
import { until } from '../../support/until.ts';
import { type ControlPlane, type KubernetesObject, startControlPlane } from '../control-plane.ts';
import { objectsOf, render } from '../install/rendered.ts';
import { FOREIGN_DEFINITIONS } from '../webhook/crds.ts';
import { grantRoles } from './role-of-guide.ts';

const TOPOLOGIES = '/apis/plumbline.dev/v1alpha1/nodetopologies';
const MERGE = 'application/merge-patch+json';

function podOf(name: string, cpus: number): KubernetesObject {
  const amounts = {
    cpu: String(cpus),
    memory: '1Gi',
    'plumbline.dev/placed': '1',
    'physnet.plumbline.dev/physnet0': '1',
  };
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name, namespace: 'default' },
    spec: { containers: [{ name: 'compute', image: 'x', resources: { requests: amounts, limits: amounts } }] },
  };
}

describe('the command on a real API server', function () {
  needs('controlPlane');
  this.timeout(300_000);
  let plane: ControlPlane;
  let admin: string;
  let user: string;

  before(async () => {
    buildCli();
    plane = await startControlPlane();
    admin = plane.adminKubeconfig;
    await plane.create({ apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name: 'user', namespace: 'default' } });
    user = await plane.kubeconfig('user', await plane.serviceAccountToken('default', 'user'));
  });
  after(() => plane?.stop());

  const run = (kubeconfig: string, ...args: string[]) => plumbline(args, { kubeconfig });
  const oneLine = (stderr: string) => assert.match(stderr, /^plumbline: .+\n$/);

  it('prints one line and ends with status 3 if the definition of NodeTopology is missing', async () => {
    const { status, stderr } = await run(admin, 'top');
    assert.equal(status, 3);
    oneLine(stderr);
    assert.match(stderr, /has no NodeTopology resource: Plumbline is not installed there/);
  });

  describe('with Plumbline installed', () => {
    before(async () => {
      await plane.create(...objectsOf(render('base/crd')), ...FOREIGN_DEFINITIONS);
      for (const name of ['worker-1', 'worker-2']) {
        const labels = { 'kubevirt.io/schedulable': 'true', 'kubevirt.io/cpumanager': 'true' };
        await plane.create({ apiVersion: 'v1', kind: 'Node', metadata: { name, labels } });
        await plane.create({ apiVersion: 'plumbline.dev/v1alpha1', kind: 'NodeTopology', metadata: { name } });
        const assignments = name === 'worker-1' ? [{ podUID: 'x', container: 'compute', cpus: '1-6,17-22' }] : [];
        await plane.client.patch(`${TOPOLOGIES}/${name}/status`, MERGE, { status: { ...REPORT, assignments } });
      }
      // Without a controller manager new nodes keep the taint that they are born with; worker-3 shows it.
      await plane.create({ apiVersion: 'v1', kind: 'Node', metadata: { name: 'worker-3' } });
      await plane.client.patch('/api/v1/nodes/worker-1', MERGE, { spec: { taints: null } });
      await plane.client.patch('/api/v1/nodes/worker-2', MERGE, { spec: { unschedulable: true } });
      await plane.create(podOf('waits', 10));
    });

    it('names a missing permission and ends with status 3', async () => {
      for (const args of [['top'], ['explain', 'pod', 'waits'], ['simulate', '--vm', '4c2t'], ['doctor']]) {
        const { status, stderr } = await run(user, ...args);
        assert.equal(status, 3, args.join(' '));
        oneLine(stderr);
        assert.match(
          stderr,
          /not allowed: .*cannot (list|get) resource "\w+".*; ask for the permissions in docs\/reference\/cli-doctor.md/,
        );
      }
    });

    describe('with the roles of the guide', () => {
      before(async () => {
        await plane.create({ apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'plumbline-system' } });
        await grantRoles(plane, 'user');
        await until('the roles to take effect', async () => (await run(user, 'top')).status !== 3);
      });

      it('explain shows the reason of each node', async () => {
        const { status, stdout, stderr } = await run(user, 'explain', 'pod', 'waits', '-o', 'json');
        assert.equal(status, 0, stderr);
        const { stage, nodes, notes } = spoken(stdout);
        assert.equal(stage, 'unscheduled');
        const kinds = Object.fromEntries(nodes.flatMap(({ kind, nodes: names }) => names.map((name) => [name, kind])));
        assert.deepEqual(kinds, { 'worker-1': 'network-elsewhere', 'worker-2': 'cordoned', 'worker-3': 'not-ready' });
        assert.match(notes[0] ?? '', /computed from the nodes’ reports/);
      });

      it('top and simulate read the reports', async () => {
        assert.equal((await run(user, 'top', '-o', 'name')).stdout, 'node/worker-1\nnode/worker-2\n');
        const { status, stdout } = await run(user, 'simulate', '--vm', '4c2t@physnet0:1');
        assert.equal(status, 1);
        assert.match(
          stdout,
          /no room for 1 more 4c2t@physnet0: 1 node: no room on the NUMA nodes of a required network/,
        );
      });

      it('doctor shows its findings and marks what it may not read as not checked', async () => {
        const { status, stdout, stderr } = await run(user, 'doctor');
        assert.equal(stderr, '');
        assert.equal(status, 1);
        assert.match(stdout, /there is no MutatingWebhookConfiguration plumbline-webhook/);
        assert.match(
          stdout,
          /certificates: not checked: the certificate of plumbline-webhook \(you may not read them\)/,
        );
        assert.match(stdout, /1 node cordoned: worker-2/);
      });
    });
  });
});
