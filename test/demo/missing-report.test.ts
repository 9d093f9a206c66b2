import assert from 'node:assert/strict';
import type { DemoNode } from '../../cli/demo/nodes.ts';
import { demoMachine } from '../../cli/demo/vms.ts';
import { NODE_TOPOLOGIES, VIRTUAL_MACHINES } from '../../sandbox/api-server/built-in-types.ts';
import type { KubePod } from '../../sandbox/objects.ts';
import { buildOnce } from '../support/bundles.ts';
import { until } from '../support/until.ts';
import { hostOf } from './drains/cluster-fixture.ts';
import { type DrainStage, startDrainStage } from './drains/stage.ts';

// With room for both VMs: the extender also accepts a node without a report.
const HOST = hostOf(1, 16, 2);
const NODES: readonly DemoNode[] = [
  { name: 'with', host: HOST, physnets: { physnet0: [0] }, about: '' },
  { name: 'without', host: HOST, physnets: {}, about: '' },
];
const DEVICE = 'physnet.plumbline.dev/physnet0';

const hasDevice = ({ spec }: KubePod) => spec.containers[0]?.resources?.limits?.[DEVICE] === '1';

describe('a VM with a required network, while the report of the only node that has it is missing', () => {
  let stage: DrainStage;
  before(async () => {
    buildOnce();
    stage = await startDrainStage(NODES);
  });
  after(() => stage?.stop());

  it('waits, and starts with its device on that node when the report is there again', async () => {
    const { client } = stage;
    await stage.stopAgent('with');
    await client.delete(NODE_TOPOLOGIES, client.get(NODE_TOPOLOGIES, undefined, 'with')!);
    await client.create(VIRTUAL_MACHINES, demoMachine({ name: 'fw', annotated: true, network: 'physnet0' }));
    await until('it waits', () =>
      stage.launchersOf('fw')[0]?.status?.conditions?.some(({ reason }) => reason === 'Unschedulable'),
    );
    await client.create(VIRTUAL_MACHINES, demoMachine({ name: 'later', annotated: true }));
    await until('a later one runs', () => stage.vmi('later')?.status?.phase === 'Running');
    assert.equal(stage.launchersOf('fw')[0]?.spec.nodeName, undefined);
    await stage.startAgent('with');
    await until('it runs', () => stage.vmi('fw')?.status?.phase === 'Running');
    const [launcher] = stage.launchersOf('fw');
    assert.equal(launcher?.spec.nodeName, 'with');
    assert.ok(launcher !== undefined && hasDevice(launcher));
  });
});
