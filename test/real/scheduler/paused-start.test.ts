import assert from 'node:assert/strict';
import type { PinningState } from '../../../kube/node-topology.ts';
import { needs } from '../../support/parts.ts';
import { until } from '../../support/until.ts';
import { installKubeVirt, type KubeVirtStandIn } from './kubevirt-stand-in.ts';
import { type Replica, report, type Stage, startStage, topologyOf } from './stage.ts';

const NODE = 'n1';

describe('VMs that start paused until they are pinned, on a real API server', function () {
  needs('controlPlane');
  needs('kubectl');
  this.timeout(300_000);
  let stage: Stage;
  let kubeVirt: KubeVirtStandIn;
  before(async () => {
    stage = await startStage();
    kubeVirt = await installKubeVirt(stage.plane);
    await stage.addNodes([{ name: NODE, topology: topologyOf() }]);
  });
  after(async () => {
    await kubeVirt?.stop();
    await stage?.stop();
  });
  let replica: Replica;
  beforeEach(async () => {
    replica = await stage.startReplica();
    kubeVirt.unpauses.length = 0;
  });
  afterEach(() => replica.stop());

  const pinned: PinningState[] = [];
  /** Adds to the report of the node's agent. */
  const says = async (podUID: string, state: PinningState['state'], message = '') => {
    pinned.push({
      podUID,
      namespace: 'default',
      podName: podUID,
      state,
      vcpus: 2,
      reason: message && 'Empty',
      message,
    });
    await report(stage.client, NODE, topologyOf({ pinning: pinned }));
  };
  const recorded = (name: string, record: RegExp) =>
    until(`the record of ${name} to be ${record}`, async () => record.test((await kubeVirt.recordOf(name)) ?? ''));
  const eventsOf = async (name: string) => {
    const path = '/api/v1/namespaces/default/events';
    const list = (await stage.client.get(path)) as {
      items: { reason: string; message: string; involvedObject: { name: string } }[];
    };
    return list.items.filter(({ involvedObject }) => involvedObject.name === name);
  };

  it('are unpaused once by the extender, with its own account, after the agent has pinned them', async () => {
    await kubeVirt.create('vm');
    await kubeVirt.started('vm', NODE, 'pod-vm');
    await recorded('vm', /^paused \d{4}-/);
    assert.ok(await kubeVirt.isPaused('vm'));
    await says('pod-vm', 'pinned');
    await recorded('vm', /^resumed$/);
    assert.deepEqual(kubeVirt.unpauses, ['default/vm']);
    assert.equal(await kubeVirt.isPaused('vm'), false);
    await until('the Event', async () => (await eventsOf('vm')).some(({ reason }) => reason === 'ResumedAfterPinning'));

    await kubeVirt.pause('vm');
    await kubeVirt.create('next');
    await kubeVirt.started('next', NODE, 'pod-next');
    await says('pod-next', 'pinned');
    await recorded('next', /^resumed$/);
    assert.deepEqual(kubeVirt.unpauses, ['default/vm', 'default/next']);
    assert.ok(await kubeVirt.isPaused('vm'), 'a pause that its user made stays');
  });

  it('are resumed by the next replica, even if the previous one died during the resume', async () => {
    await kubeVirt.create('handed');
    await kubeVirt.started('handed', NODE, 'pod-handed');
    await recorded('handed', /^paused/);
    kubeVirt.away = true;
    await says('pod-handed', 'pinned');
    await until('the failure to be reported', async () =>
      (await eventsOf('handed')).some(({ reason }) => reason === 'ResumeFailed'),
    );
    await replica.stop('SIGKILL');
    kubeVirt.away = false;
    assert.deepEqual(kubeVirt.unpauses, []);
    replica = await stage.startReplica();
    await until('the next to take over', async () => (await kubeVirt.recordOf('handed')) === 'resumed');
    assert.deepEqual(kubeVirt.unpauses, ['default/handed']);
  });
});
