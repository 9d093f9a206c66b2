import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { CpuSet } from '../../model/cpu-set.ts';
import { createAffinity } from '../../native/affinity.ts';
import { createCrew } from '../../node-agent/ovs-affinity/crew.ts';
import { procThreads } from '../../node-agent/ovs-affinity/threads.ts';
import { needs } from '../support/parts.ts';
import { type RealOvs, startRealOvs } from './real-ovs.ts';
import { allowedLists, eventually, tempDirectories, testMetrics } from './support.ts';

describe('affinity of a real Open vSwitch', () => {
  needs('openVswitch');
  const temp = tempDirectories();
  const machine = () => CpuSet.parse(readFileSync('/sys/devices/system/cpu/online', 'utf8'));
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
    const crew = createCrew({
      affinity: createAffinity(),
      threads: procThreads,
      machine,
      now: () => performance.now(),
      rundir: ovs.rundir,
      metrics: testMetrics(),
    });
    const before = masks();
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
