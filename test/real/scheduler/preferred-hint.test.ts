import assert from 'node:assert/strict';
import { nearResource, PLACEMENT_ANNOTATION, physnetResource } from '../../../model/names.ts';
import { formatPreferences, NO_PREFERENCES } from '../../../model/placement/preferences.ts';
import { needs } from '../../support/parts.ts';
import { shippedPluginConfig } from '../../support/shipped.ts';
import { until } from '../../support/until.ts';
import { type Replica, type Stage, startStage, topologyOf } from './stage.ts';

const NETWORK = physnetResource('physnet0');
const NEAR = nearResource(NETWORK);
const [PLAIN, IGNORING] = ['counts-everything', 'plumbline-scheduler'];

describe('a preferred network as a hint, on a real kube-scheduler', function () {
  needs('controlPlane');
  needs('kubectl');
  this.timeout(300_000);
  let stage: Stage;
  let replica: Replica;

  before(async function () {
    this.timeout(300_000);
    stage = await startStage();
    replica = await stage.startReplica();
    await until('the replica to be active', () => replica.isActive());
    await stage.startScheduler({ name: PLAIN });
    await stage.startScheduler({ name: IGNORING, pluginConfig: shippedPluginConfig() });
    await stage.addNodes([{ name: 'lacks-it', topology: topologyOf({ physnets: [] }) }]);
  });
  after(() => stage?.stop());

  const add = (name: string, schedulerName: string) =>
    stage.addPod({
      name,
      cpu: '2',
      devices: ['devices.kubevirt.io/kvm', NEAR],
      annotations: { [PLACEMENT_ANNOTATION]: formatPreferences({ ...NO_PREFERENCES, preferred: [NETWORK] }) },
      more: { schedulerName },
    });
  const nodeOf = async (name: string) => {
    await until(`${name} to be bound`, async () => (await stage.podOf(name)).spec.nodeName !== undefined);
    return (await stage.podOf(name)).spec.nodeName;
  };
  const setNear = (node: string, amount: string) => {
    const amounts = { [NEAR]: amount };
    const status = { capacity: amounts, allocatable: amounts };
    return stage.client.patch(`/api/v1/nodes/${node}/status`, 'application/merge-patch+json', { status });
  };

  it('is placed on a node that never had the resource', async () => {
    await add('absent', IGNORING);
    assert.equal(await nodeOf('absent'), 'lacks-it');
  });

  it('is placed on no node by a scheduler that counts it, so only Plumbline’s scheduler gets such pods', async () => {
    await add('counted', PLAIN);
    const message = async () =>
      (await stage.podOf('counted')).status.conditions?.find(({ message }) => message)?.message;
    await until('the refusal', async () => (await message()) !== undefined);
    assert.match((await message()) ?? '', new RegExp(`Insufficient ${NEAR}`));
    await stage.client.delete('/api/v1/namespaces/default/pods/counted');
  });

  it('is placed on a node with the network if there is one', async () => {
    await stage.addNodes([{ name: 'has-it', topology: topologyOf({ hintsNetworks: true }) }]);
    await setNear('has-it', '110');
    await add('present', IGNORING);
    assert.equal(await nodeOf('present'), 'has-it');
  });

  it('is not placed on a node whose kubelet has none left and would refuse it, until its agent is back', async () => {
    await setNear('has-it', '0');
    const unserved = /does not serve the devices/;
    await until('the extender to know', async () => {
      await add('while-away', IGNORING);
      const node = await nodeOf('while-away');
      await stage.client.delete('/api/v1/namespaces/default/pods/while-away');
      return node === 'lacks-it';
    });
    await stage.client.patch('/api/v1/nodes/lacks-it', 'application/merge-patch+json', {
      spec: { unschedulable: true },
    });
    await add('waits', IGNORING);
    const message = async () => (await stage.podOf('waits')).status.conditions?.find(({ message }) => message)?.message;
    await until('the refusal', async () => unserved.test((await message()) ?? ''));
    await setNear('has-it', '110');
    assert.equal(await nodeOf('waits'), 'has-it');
  });
});
