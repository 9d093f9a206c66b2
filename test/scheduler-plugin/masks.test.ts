import assert from 'node:assert/strict';
import type { Pod } from '../../kube/resources.ts';
import { extenderOf, statusOf, withUid } from './extender-fixture.ts';

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
/** CPU 2 was taken offline and CPU 7 is there: four CPUs, and a count would say that 0 to 3 are. */
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
  const lacks = 'node lacks CPUs of the CPU mask';
  const none = 'CPU mask names no CPU that may be used on the node';
  const cases: { mask: string; node: ReturnType<typeof statusOf>; fix?: string; refused?: string }[] = [
    { mask: '1:3', node: four },
    { mask: '1:4', node: four, refused: lacks },
    { mask: '0-3', node: gaps, refused: lacks },
    { mask: '1,3,7', node: gaps },
    { mask: '7', node: gaps },
    { mask: '7', node: four, refused: lacks },
    { mask: '200', node: four, refused: lacks },
    { mask: '0', node: four, refused: none },
    { mask: '0-1', node: four },
    { mask: '0:1', node: four, refused: none },
    { mask: 'all:1', node: four },
    { mask: 'all', node: four },
    { mask: '', node: four },
    { mask: '1-2', node: owned, refused: none },
    { mask: '1-3', node: owned },
    { mask: '3:2', node: owned, refused: none },
    { mask: '1:4', node: four, fix: 'true' },
    { mask: '1:4', node: four, fix: 'yes', refused: lacks },
    { mask: '0', node: four, fix: 'true', refused: none },
  ];
  for (const { mask, node, fix, refused } of cases) {
    const free = node.assignments.length > 0 ? ', some owned' : '';
    const host = `CPUs ${node.cells[0]?.cpus}, ${node.reserved} reserved${free}`;
    it(`${JSON.stringify(mask)}${fix ? ` with the fix ${fix}` : ''} on ${host}: ${refused ?? 'fits'}`, () => {
      const { filter } = extenderOf({ nodes: { n1: node } });
      const reply = filter(launcherOf(mask, { ...(fix === undefined ? {} : { fix }) }));
      assert.deepEqual(reply.NodeNames, refused === undefined ? ['n1'] : []);
      assert.equal(reply.FailedAndUnresolvableNodes['n1'], refused);
    });
  }

  it('are told in full by explain', () => {
    const { extender } = extenderOf({ nodes: { n1: gaps, n2: owned } });
    const [first, second] = extender.explain(launcherOf('1-2'));
    assert.ok(first && !first.verdict.fits && second && !second.verdict.fits);
    assert.equal(
      first.verdict.detail,
      'the CPU mask 1-2 names CPU 2, which is not online on this host (it has 0-1,3,7)',
    );
    assert.match(second.verdict.detail, /leaves every vCPU no CPU: of 1-2 none .* \(free: 3\)/);
  });

  it('keep to the node that has the CPUs, also for the target of a migration', () => {
    const { filter } = extenderOf({ nodes: { small: four, large: statusOf() } });
    const target = launcherOf('9:10', {
      labels: { 'kubevirt.io': 'virt-launcher', 'kubevirt.io/migrationJobUID': 'migration' },
    });
    assert.deepEqual(filter(target).NodeNames, ['large']);
  });

  it('are judged by the report of the moment', () => {
    const { filter, state, told, extender } = extenderOf({ nodes: { n1: owned } });
    const pod = launcherOf('1-2');
    assert.deepEqual(filter(pod).NodeNames, []);
    assert.ok(told.includes('waits masked'));
    assert.equal(extender.wouldFit(extender.needsOf(pod), 'n1'), false);
    state.reportChanged('n1', four);
    assert.equal(extender.wouldFit(extender.needsOf(pod), 'n1'), true);
    assert.deepEqual(filter(pod).NodeNames, ['n1']);
  });

  it('of VMs with different masks are not taken for each other', () => {
    const { filter } = extenderOf({ nodes: { n1: four } });
    assert.deepEqual(filter(withUid(launcherOf('1'), 'a')).NodeNames, ['n1']);
    assert.deepEqual(filter(withUid(launcherOf('9'), 'b')).NodeNames, []);
    assert.deepEqual(filter(withUid(launcherOf('1'), 'c')).NodeNames, ['n1']);
  });

  it('follow the policy on a node that does not report, or has stopped to', () => {
    const silent = (policy: 'refuse' | 'count-check') => extenderOf({ nodes: { n1: undefined }, policy });
    assert.equal(
      silent('refuse').filter(launcherOf('9')).FailedAndUnresolvableNodes['n1'],
      'node does not report its topology',
    );
    assert.deepEqual(silent('count-check').filter(launcherOf('9')).NodeNames, ['n1']);
    const stale = extenderOf({ nodes: { n1: four }, flags: { n1: 'stale' } });
    assert.equal(stale.filter(launcherOf('9')).FailedAndUnresolvableNodes['n1'], 'node’s agent has stopped reporting');
  });

  it('are an error where they cannot be read, and nothing on what is no launcher', () => {
    const { filter } = extenderOf({ nodes: { n1: four } });
    assert.throws(() => filter(launcherOf('0-')), /CPU mask "0-"/);
    assert.deepEqual(filter(launcherOf('0-', { labels: {} })).NodeNames, ['n1']);
  });

  it('do not count for a launcher with CPUs of its own, which the webhook refuses', () => {
    const { filter } = extenderOf({ nodes: { n1: statusOf() } });
    assert.deepEqual(filter(launcherOf('9', { cpu: '2' })).NodeNames, ['n1']);
  });
});
