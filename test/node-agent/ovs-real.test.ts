import assert from 'node:assert/strict';
import { CpuSet } from '../../model/cpu-set.ts';
import { createCrew } from '../../node-agent/ovs-affinity/crew.ts';
import { procThreads } from '../../node-agent/ovs-affinity/threads.ts';
import { needs } from '../support/parts.ts';
import { machine, ovsParts } from './ovs-affinity/parts.ts';
import { type RealOvs, startRealOvs } from './real-ovs.ts';
import { allowedLists, eventually, tempDirectories } from './support.ts';

describe('affinity of a real Open vSwitch', () => {
  needs('openVswitch');
  const temp = tempDirectories();
  let ovs: RealOvs;

  before(async function () {
    if (machine().size < 2) this.skip();
    ovs = await startRealOvs(temp());
    ovs.vsctl('--may-exist', 'add-br', 'plumb0', '--', 'set', 'bridge', 'plumb0', 'datapath_type=netdev');
    await eventually(() => procThreads.list(ovs.vswitchd.pid!).length > 3, 'handlers and revalidators');
  });
  after(async () => ovs?.stop());

  const masks = () => [...new Set([ovs.vswitchd, ovs.ovsdb].flatMap(({ pid }) => allowedLists(pid!)))];

  it('every thread of both daemons is moved, and given its own mask back', async () => {
    const [first] = machine();
    const crew = createCrew(ovsParts(temp(), { rundir: ovs.rundir }));
    const before = masks();
    crew.look();
    const { moved, problems } = crew.apply({ only: CpuSet.of([first!]) });
    assert.deepEqual(problems, []);
    assert.ok(moved > 4, `${moved} threads`);
    assert.deepEqual(masks(), [String(first)]);

    // ovs-vswitchd makes its threads anew now and then; one pass puts the new ones right.
    crew.apply({ only: CpuSet.of([first!]) });
    assert.deepEqual(masks(), [String(first)]);
    await crew.vacate(CpuSet.of([first!]), machine());
    assert.deepEqual(masks(), [
      machine()
        .minus(CpuSet.of([first!]))
        .toString(),
    ]);
    crew.restore();
    assert.deepEqual(masks(), before);
  });
});
