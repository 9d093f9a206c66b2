import assert from 'node:assert/strict';
import { until } from '../../support/until.ts';
import { onControlPlane, podOf } from '../control-plane-stage.ts';
import { report, type Stage, startStage, topologyOf } from './stage.ts';

const LEASES = '/apis/coordination.k8s.io/v1/namespaces/plumbline-system/leases';
/** Four CPUs each; CPU 22 is only on one node, and CPU 2 on no node with gaps. */
const nodeOfCpus = (...cpus: string[]) =>
  topologyOf({ cells: [{ id: 0, cpus: cpus.join() }], cores: cpus, reserved: '0', physnets: [] });
const NODES = {
  numa1: nodeOfCpus('0', '1', '2', '22'),
  small: nodeOfCpus('0', '1', '2', '3'),
  gaps: nodeOfCpus('0', '1', '3', '9'),
};

describe('CPU masks with a real scheduler', function () {
  onControlPlane(this);
  let stage: Stage;
  let renewals: NodeJS.Timeout | undefined;
  before(async () => {
    stage = await startStage();
    await stage.addNodes(Object.entries(NODES).map(([name, topology]) => ({ name, topology })));
    await stage.startReplica();
    await stage.startScheduler();
  });
  after(async () => {
    clearInterval(renewals);
    await stage?.stop();
  });

  const launch = async (name: string, mask: string, more: { labels?: object; annotations?: object } = {}) => {
    const resources = { requests: { cpu: '200m' }, limits: { 'devices.kubevirt.io/kvm': '1' } };
    const labels = { 'kubevirt.io': 'virt-launcher', ...more.labels };
    const annotations = { 'plumbline.dev/cpu-mask': mask, ...more.annotations };
    const containers = [{ name: 'compute', image: 'none', resources }];
    const pod = podOf({ name, labels, annotations }, { terminationGracePeriodSeconds: 0, containers });
    await stage.client.create('/api/v1/namespaces/default/pods', pod);
  };
  const refusalOf = (name: string) =>
    until(`the refusal of ${name}`, async () => (await stage.waitsFor(name)) || undefined);

  it('bring a VM to a node that has the CPUs, by their ids', async () => {
    await launch('nine', '3:9');
    assert.equal(await stage.bound('nine'), 'gaps');
  });

  it('bring the target of a migration there too', async () => {
    await launch('target', '22', { labels: { 'kubevirt.io/migrationJobUID': 'migration' } });
    assert.equal(await stage.bound('target'), 'numa1');
  });

  it('that fall back to all: a mask that one node can keep goes there, however full it is for the scheduler', async () => {
    const amounts = { requests: { cpu: '50', memory: '200Gi' } };
    const containers = [{ name: 'load', image: 'none', resources: amounts }];
    await stage.plane.create(podOf({ name: 'load' }, { nodeName: 'numa1', containers }));
    const annotations = { 'plumbline.dev/fix-cpu-mismatch': 'true' };
    await launch('kept', '2:22', { annotations });
    assert.equal(await stage.bound('kept'), 'numa1');
    await launch('fixed', '99', { annotations });
    await stage.bound('fixed');
  });

  it('have the reason of each node in the pod’s condition if no node can satisfy them, and wait for a report', async () => {
    await report(stage.client, 'numa1', {
      ...NODES.numa1,
      assignments: [{ podUID: 'other', container: 'compute', cpus: '22' }],
    });
    await until('the CPU to be taken', async () => {
      const name = `probe-${Date.now()}`;
      await launch(name, '22');
      const isRefused = /1 CPU mask names no CPU that may be used on the node/.test(await refusalOf(name));
      await stage.client.delete(`/api/v1/namespaces/default/pods/${name}`);
      return isRefused;
    });
    await launch('nowhere', '22');
    assert.match(await refusalOf('nowhere'), /2 node lacks CPUs of the CPU mask/);
    await report(stage.client, 'numa1', NODES.numa1);
    assert.equal(await stage.bound('nowhere'), 'numa1');
  });

  it('nodes with a dead agent take no VM with a mask, with the reason in the pod’s condition, until it recovers', async () => {
    const renew = async (node: string) => {
      const name = `plumbline-agent-${node}`;
      const renewTime = new Date().toISOString().replace('Z', '000Z');
      const spec = { holderIdentity: node, leaseDurationSeconds: 2, renewTime };
      const lease = { apiVersion: 'coordination.k8s.io/v1', kind: 'Lease', metadata: { name }, spec };
      const path = `${LEASES}/${name}`;
      await stage.client
        .patch(path, 'application/merge-patch+json', { spec })
        .catch(() => stage.client.create(LEASES, lease));
    };
    await renew('gaps');
    // Another agent is alive, so the extender knows that it still gets Leases.
    const alive = new Set(['small']);
    renewals = setInterval(() => {
      for (const node of alive) void renew(node).catch(() => undefined);
    }, 300);
    let waiting = '';
    await until('the agent to count as dead', async () => {
      waiting = `waits-${Date.now()}`;
      await launch(waiting, '9');
      await until('a decision', async () => {
        const { spec, status } = await stage.podOf(waiting);
        return spec.nodeName !== undefined || (status.conditions ?? []).length > 0;
      });
      if ((await stage.podOf(waiting)).spec.nodeName === undefined) return true;
      // Its CPUs would be missing in the next attempt.
      await stage.client.delete(`/api/v1/namespaces/default/pods/${waiting}`);
      return false;
    });
    assert.match(await refusalOf(waiting), /1 CPU mask cannot be applied: node’s agent has stopped reporting/);
    alive.add('gaps');
    assert.equal(await stage.bound(waiting), 'gaps');
  });
});
