import assert from 'node:assert/strict';
import type { Pod } from '../../../kube/resources.ts';
import { extenderOf, statusOf } from '../extender-fixture.ts';

const MASK = 'plumbline.dev/cpu-mask';
const FIX = 'plumbline.dev/fix-cpu-mismatch';

/** The launcher of a VM on shared CPUs, with the VM's annotations. */
function launcherOf(mask: string, more: { fix?: string; labels?: Record<string, string>; cpu?: string } = {}): Pod {
  const { fix, labels = { 'kubevirt.io': 'virt-launcher' }, cpu } = more;
  const amounts = cpu === undefined ? {} : { cpu, memory: '1Gi' };
  return {
    metadata: {
      name: 'vm',
      namespace: 'default',
      uid: 'masked',
      labels,
      annotations: { [MASK]: mask, ...(fix === undefined ? {} : { [FIX]: fix }) },
    },
    spec: { containers: [{ name: 'compute', resources: { requests: { cpu: '200m', ...amounts }, limits: amounts } }] },
  } as unknown as Pod;
}

const cell = (cpus: string) => [{ id: 0, cpus }];
/** CPU 2 is offline and CPU 7 is online: four CPUs, but not 0 to 3. */
const gaps = statusOf({
  cells: cell('0,1,3,7'),
  cores: ['0', '1', '3', '7'],
  reserved: '0',
  physnets: [],
  tunnel: undefined,
});
const four = statusOf({
  cells: cell('0-3'),
  cores: ['0', '1', '2', '3'],
  reserved: '0',
  physnets: [],
  tunnel: undefined,
});
const owned = { ...four, assignments: [{ podUID: 'other', container: 'compute', cpus: '1-2' }] };

describe('CPU masks at scheduling', () => {
  it('are checked against the current report', () => {
    const { filter, state, notified, extender, verdicts } = extenderOf({ nodes: { n1: owned } });
    const pod = launcherOf('1-2');
    assert.deepEqual(filter(pod).NodeNames, []);
    assert.ok(notified.includes('waits masked'));
    assert.equal(verdicts.wouldFit(extender.needsOf(pod), 'n1'), false);
    state.reportChanged('n1', four);
    assert.equal(verdicts.wouldFit(extender.needsOf(pod), 'n1'), true);
    assert.deepEqual(filter(pod).NodeNames, ['n1']);
  });

  for (const policy of ['refuse', 'count-check'] as const) {
    it(`need a live agent under --unpredictable ${policy}: without one the VM would stay paused`, () => {
      const cannot = 'CPU mask cannot be applied: node';
      const mute = extenderOf({ nodes: { n1: undefined }, policy }).filter(launcherOf('1'));
      assert.deepEqual(mute.FailedAndUnresolvableNodes, { n1: `${cannot} does not report its topology` });
      for (const fix of ['false', 'true']) {
        const { filter, state } = extenderOf({ nodes: { n1: four }, flags: { n1: 'stale' }, policy });
        const dead = filter(launcherOf('1', { fix }));
        assert.deepEqual(dead.FailedAndUnresolvableNodes, { n1: `${cannot}’s agent has stopped reporting` });
        assert.deepEqual(filter(launcherOf('all', { fix })).NodeNames, ['n1'], 'all needs no agent');
        state.setFlag('n1', 'stale', false);
        assert.deepEqual(filter(launcherOf('1', { fix })).NodeNames, ['n1']);
      }
    });
  }

  it('are refused on a node with a quarantined report', () => {
    const { filter, state } = extenderOf({ nodes: { n1: four } });
    state.fleet.set('n1', 'quarantined', true);
    assert.deepEqual(filter(launcherOf('1')).FailedAndUnresolvableNodes, {
      n1: 'CPU mask cannot be applied: node’s report is quarantined; see its Events',
    });
    state.fleet.set('n1', 'quarantined', false);
    assert.deepEqual(filter(launcherOf('1')).NodeNames, ['n1']);
  });

  for (const [others, found] of [
    [31, true],
    [32, false],
  ] as const) {
    it(`wait for a node that was not offered: ${found ? 'found' : 'not searched for'} behind ${others} without the CPUs`, () => {
      const lacking = Object.fromEntries(Array.from({ length: others }, (_, i) => [`n${i}`, four]));
      const { filter, notified } = extenderOf({ nodes: { offered: four, ...lacking, large: statusOf() } });
      filter(launcherOf('9'), ['offered']);
      assert.deepEqual(
        notified.filter((line) => line.startsWith('neverOffered')),
        found ? ['neverOffered masked large'] : [],
      );
    });
  }

  it('are an error if malformed, and have no effect on pods other than launchers', () => {
    const { filter } = extenderOf({ nodes: { n1: four } });
    assert.throws(() => filter(launcherOf('0-')), /CPU mask "0-"/);
    assert.deepEqual(filter(launcherOf('0-', { labels: {} })).NodeNames, ['n1']);
  });
});

describe('CPU masks that may fall back to all CPUs', () => {
  const elsewhere = 'another node has the CPUs of the CPU mask';
  const large = statusOf();
  const fixed = (mask: string) => launcherOf(mask, { fix: 'true' });

  it('need the one node that has their CPUs', () => {
    const { filter } = extenderOf({ nodes: { a: four, b: gaps, large, z: four } });
    const reply = filter(fixed('2:12'));
    assert.deepEqual(reply.NodeNames, ['large']);
    assert.deepEqual(reply.FailedAndUnresolvableNodes, { a: elsewhere, b: elsewhere, z: elsewhere });
  });

  it('fall back if no node has their CPUs', () => {
    const { filter } = extenderOf({ nodes: { a: four, b: gaps, large } });
    assert.deepEqual(filter(fixed('2:22')).NodeNames, ['a', 'b', 'large']);
  });

  it('fall back while other pods own the CPUs on the only node that has them, and need that node again when they are free', () => {
    const full = { ...large, assignments: [{ podUID: 'other', container: 'compute', cpus: '4,12' }] };
    const { filter, state } = extenderOf({ nodes: { a: four, large: full } });
    const taken = filter(fixed('2:12'));
    assert.deepEqual(taken.NodeNames, ['a']);
    assert.match(taken.FailedAndUnresolvableNodes['large'] ?? '', /names no CPU that may be used/);
    state.reportChanged('large', large);
    assert.deepEqual(filter(fixed('2:12')).NodeNames, ['large']);
  });
});
