import assert from 'node:assert/strict';
import { needs } from '../../support/parts.ts';
import { until } from '../../support/until.ts';
import { configurationAt, type Replica, type Stage, startStage, topologyOf } from './stage.ts';

const [SIDECAR, LOOPBACK] = ['sidecar', 'loopback'] as const;

describe('a real kube-scheduler and nodes with CPU manager policy none', function () {
  needs('controlPlane');
  needs('kubectl');
  this.timeout(300_000);
  let stage: Stage;

  before(async function () {
    this.timeout(300_000);
    stage = await startStage();
    const replica: Replica = await stage.startReplica();
    await until('the replica to be active', () => replica.isActive());
    const topology = topologyOf({ cpuManager: { policy: 'none' }, topologyManager: { policy: 'none' }, reserved: '' });
    await stage.addNodes([{ name: 'n1', topology, labels: { 'kubevirt.io/cpumanager': 'true' } }]);
    for (const name of [SIDECAR, LOOPBACK]) {
      const { extenders } = await configurationAt(name, replica.port);
      await stage.startScheduler({ name, extenders });
    }
  });
  after(() => stage?.stop());

  const nodeOf = async (name: string) => (await stage.podOf(name)).spec.nodeName;

  it('loopback: an ordinary Guaranteed pod with one CPU is bound', async () => {
    await stage.addPod({ name: 'web', cpu: '1', devices: [], more: { schedulerName: LOOPBACK } });
    await until('it to be bound', async () => (await nodeOf('web')) === 'n1');
  });

  it('sidecar: a Guaranteed VM without dedicated CPUs is bound', async () => {
    const labels = { 'kubevirt.io': 'virt-launcher' };
    await stage.addPod({ name: 'vm', cpu: '3', labels, more: { schedulerName: SIDECAR } });
    await until('it to be bound', async () => (await nodeOf('vm')) === 'n1');
  });

  it('both: a VM with dedicated CPUs waits, with the reason', async () => {
    for (const [name, schedulerName] of [
      ['vm-sidecar', SIDECAR],
      ['vm-loopback', LOOPBACK],
    ] as const) {
      const more = { schedulerName, nodeSelector: { 'kubevirt.io/cpumanager': 'true' } };
      await stage.addPod({ name, cpu: '4', labels: { 'kubevirt.io': 'virt-launcher' }, more });
      await until(`${name} to be refused`, async () => {
        const { conditions = [] } = (await stage.podOf(name)).status;
        return conditions.some(({ message = '' }) => message.includes('node gives no exclusive CPUs'));
      });
      assert.equal(await nodeOf(name), undefined);
    }
  });
});
