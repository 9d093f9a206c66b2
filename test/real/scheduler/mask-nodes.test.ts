import assert from 'node:assert/strict';
import type { NodeTopologyStatus } from '../../../kube/node-topology.ts';
import { needs } from '../../support/parts.ts';
import { until } from '../../support/until.ts';
import { launchMasked, refusalOf } from './masked-launcher.ts';
import { report, type Stage, startStage, topologyOf } from './stage.ts';

const FIX = { fix: 'true' };
const MERGE = 'application/merge-patch+json';
const LEASES = '/apis/coordination.k8s.io/v1/namespaces/plumbline-system/leases';
const NAMES = ['small1', 'small2', 'small3', 'small4'];
const SMALL: NodeTopologyStatus = topologyOf({
  cells: [{ id: 0, cpus: '0-3' }],
  cores: ['0', '1', '2', '3'],
  reserved: '0',
  physnets: [],
});
/** The only node with CPU 22. */
const NUMA1: NodeTopologyStatus = { ...SMALL, cells: [{ id: 0, cpus: '0-2,22' }], cores: ['0', '1', '2', '22'] };

describe('nodes for CPU masks with a real scheduler', function () {
  needs('controlPlane');
  this.timeout(300_000);
  let stage: Stage;
  before(async () => {
    stage = await startStage();
    await stage.addNodes([{ name: 'numa1', topology: NUMA1 }, ...NAMES.map((name) => ({ name, topology: SMALL }))]);
    const replica = await stage.startReplica();
    await until('it to be active', () => replica.isActive());
    await stage.startScheduler();
  });
  after(() => stage?.stop());

  const nodeOf = async (name: string): Promise<string> => {
    await until(`${name} to be bound`, async () => (await stage.podOf(name)).spec.nodeName !== undefined);
    return (await stage.podOf(name)).spec.nodeName ?? '';
  };
  const cordon = (unschedulable: boolean) =>
    stage.client.patch('/api/v1/nodes/numa1', MERGE, { spec: { unschedulable } });

  /** Until both the scheduler and the extender refuse a mask on a node. */
  const untilRefusedOn = (node: string, mask: string, why: string) =>
    until(`${node} to be refused: ${why}`, async () => {
      const name = `probe-${Date.now()}`;
      await launchMasked(stage.client, name, mask, { nodeSelector: { 'kubernetes.io/hostname': node } });
      let [bound, said] = [false, ''];
      await until('a decision', async () => {
        const pod = await stage.podOf(name);
        bound = pod.spec.nodeName !== undefined;
        said = refusalOf(pod);
        return bound || said !== '';
      });
      await stage.client.delete(`/api/v1/namespaces/default/pods/${name}`);
      return !bound && said.includes(why);
    });

  describe('for masks that fall back to all', () => {
    it('a mask that one node can keep goes there, however full it is for the scheduler', async () => {
      const amounts = { requests: { cpu: '50', memory: '200Gi' } };
      await stage.client.create('/api/v1/namespaces/default/pods', {
        apiVersion: 'v1',
        kind: 'Pod',
        metadata: { name: 'load' },
        spec: { nodeName: 'numa1', containers: [{ name: 'load', image: 'none', resources: amounts }] },
      });
      const vms = ['vm1', 'vm2', 'vm3', 'vm4', 'vm5'];
      await Promise.all(vms.map((name) => launchMasked(stage.client, name, '2:22', FIX)));
      assert.deepEqual(
        await Promise.all(vms.map(nodeOf)),
        vms.map(() => 'numa1'),
      );
    });

    it('a mask falls back on another node if the scheduler itself excludes its node', async () => {
      await cordon(true);
      await untilRefusedOn('numa1', '2', '1 node(s) were unschedulable');
      await launchMasked(stage.client, 'evacuated', '2:22', FIX);
      assert.match(await nodeOf('evacuated'), /^small/);
      await cordon(false);
    });

    it('a mask falls back on another node if other pods own its CPUs', async () => {
      const owned = [{ podUID: 'other', container: 'compute', cpus: '22' }];
      await report(stage.client, 'numa1', { ...NUMA1, assignments: owned });
      await untilRefusedOn('numa1', '22', '1 CPU mask names no CPU that may be used on the node');
      await launchMasked(stage.client, 'late', '2:22', FIX);
      assert.match(await nodeOf('late'), /^small/);
      await report(stage.client, 'numa1', NUMA1);
    });
  });

  describe('with a dead agent', () => {
    let renewals: NodeJS.Timeout | undefined;
    after(() => clearInterval(renewals));

    const renew = async (node: string) => {
      const name = `plumbline-agent-${node}`;
      const spec = {
        holderIdentity: node,
        leaseDurationSeconds: 2,
        renewTime: new Date().toISOString().replace('Z', '000Z'),
      };
      const lease = { apiVersion: 'coordination.k8s.io/v1', kind: 'Lease', metadata: { name }, spec };
      await stage.client.patch(`${LEASES}/${name}`, MERGE, { spec }).catch(() => stage.client.create(LEASES, lease));
    };

    it('take no VM with a mask, with the reason in the pod’s condition', async () => {
      await renew('small4');
      // Another agent is alive, so the extender knows that it still gets Leases.
      renewals = setInterval(() => void renew('small1').catch(() => undefined), 300);
      await untilRefusedOn('small4', '2', '1 CPU mask cannot be applied: node’s agent has stopped reporting');
      await launchMasked(stage.client, 'nowhere', '90');
      await until('the refusal', async () => refusalOf(await stage.podOf('nowhere')) !== '');
      const message = refusalOf(await stage.podOf('nowhere'));
      assert.match(message, /^0\/5 nodes are available: .*1 CPU mask cannot be applied: node’s agent has stopped/);
      assert.match(message, /4 node lacks CPUs of the CPU mask/);
      assert.equal((await stage.podOf('nowhere')).spec.nodeName, undefined);
    });

    it('take VMs with a mask again after its recovery', async () => {
      await launchMasked(stage.client, 'waits', '2', { nodeSelector: { 'kubernetes.io/hostname': 'small4' } });
      await until('the refusal', async () => refusalOf(await stage.podOf('waits')) !== '');
      const back = setInterval(() => void renew('small4').catch(() => undefined), 300);
      try {
        assert.equal(await nodeOf('waits'), 'small4');
      } finally {
        clearInterval(back);
      }
    });
  });
});
