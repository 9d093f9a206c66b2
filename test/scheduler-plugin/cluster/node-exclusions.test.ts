import assert from 'node:assert/strict';
import { mock } from 'node:test';
import type { NodeTopologyStatus } from '../../../kube/node-topology.ts';
import { type ExtenderUnderTest, extenderOf, onNode, owned, podOf, statusOf, withUid } from '../extender-fixture.ts';

const four = (uid: string) => withUid(podOf('4'), uid);
const owning = (cpus: string) => statusOf({ assignments: [owned('other', cpus)] });

const at = (time: string): NodeTopologyStatus =>
  statusOf({ summary: { cpus: 16, free: 14, networks: '', reported: `2026-11-01T${time}:00Z` } });

/** A kubelet that refuses every pod, whatever its report. */
class Refuser {
  readonly under: ExtenderUnderTest;
  #pods = 0;

  constructor(nodes: Readonly<Record<string, NodeTopologyStatus>> = { n1: statusOf() }) {
    this.under = extenderOf({ nodes, answers: 1 });
  }

  /** Places a pod and rejects it. @returns the node, or undefined if there was none */
  reject(reason = 'TopologyAffinityError', cpu = '4', names?: readonly string[]): string | undefined {
    const pod = withUid(podOf(cpu), `p${this.#pods++}`, { namespace: `team-${this.#pods}` });
    const [nodeName] = this.under.filter(pod, names).NodeNames;
    if (nodeName === undefined) return undefined;
    const bound = onNode(pod, nodeName);
    this.under.see(bound);
    this.under.see(bound, { phase: 'Failed', reason });
    this.under.gone(bound);
    return nodeName;
  }

  /** Rejects as many pods as get a node within this time, one each second. */
  rejectFor(seconds: number, each: () => void = () => undefined): number[] {
    const times: number[] = [];
    for (let second = 0; second < seconds; second++) {
      if (this.reject() !== undefined) times.push(second);
      each();
      this.under.clock.now++;
    }
    return times;
  }

  fits(cpu = '4', name = 'n1'): boolean {
    return this.under.filter(withUid(podOf(cpu), 'probe'), [name]).NodeNames.length > 0;
  }
}

describe('a node whose kubelet rejected a pod that was predicted to fit', () => {
  it('gets no more such pods of any owner, and says why; they go elsewhere at once', () => {
    // The better node for the pod, as the one whose huge pages are all in use.
    const refuser = new Refuser({ fuller: owning('1-3,9-11'), empty: statusOf() });
    assert.equal(refuser.reject('OutOfcpu'), 'fuller');
    const { NodeNames, FailedAndUnresolvableNodes } = refuser.under.filter(four('successor'));
    assert.deepEqual(NodeNames, ['empty']);
    assert.deepEqual(FailedAndUnresolvableNodes, { fuller: 'its kubelet refused a pod of this shape: OutOfcpu' });
    const [explained] = refuser.under.extender.explain(four('successor'), ['fuller']).map((one) => one());
    assert.ok(explained && !explained.verdict.fits && explained.verdict.kind === 'refused-by-kubelet');
  });

  const ENDS: readonly [label: string, act: (refuser: Refuser) => void, fits: boolean][] = [
    ['after 29 s', ({ under }) => (under.clock.now += 29), false],
    ['after 30 s', ({ under }) => (under.clock.now += 30), true],
    ['after a report that only has another time', ({ under }) => under.state.reportChanged('n1', at('10:20')), false],
    ['after a report with other free CPUs', ({ under }) => under.state.reportChanged('n1', owning('7,15')), true],
  ];
  for (const [label, act, fits] of ENDS) {
    it(`${fits ? 'gets' : 'does not get'} such pods ${label}`, () => {
      const refuser = new Refuser({ n1: at('10:10'), n2: statusOf() });
      refuser.reject(undefined, undefined, ['n1']);
      act(refuser);
      assert.equal(refuser.fits(), fits);
    });
  }

  it('is tried after 30 s, then after twice the time, up to ten minutes', () => {
    assert.deepEqual(new Refuser().rejectFor(3000), [0, 30, 90, 210, 450, 930, 1530, 2130, 2730]);
  });

  it('is not tried more often because its report keeps changing', () => {
    const refuser = new Refuser();
    let change = 0;
    const times = refuser.rejectFor(1000, () =>
      refuser.under.state.reportChanged('n1', owning(`${1 + (change++ % 2)}`)),
    );
    assert.deepEqual([times.length, ...times.slice(0, 2)], [7, 0, 1], `${times}`);
  });

  it('is not excluded for longer by pods that were on their way', () => {
    const { filter, see, clock } = extenderOf();
    const pods = ['a', 'b', 'c'].map((uid) => four(uid));
    for (const pod of pods) assert.deepEqual(filter(pod).NodeNames, ['n1']);
    for (const pod of pods) {
      see(onNode(pod), { phase: 'Failed', reason: 'SMTAlignmentError' });
    }
    clock.now += 30;
    assert.deepEqual(filter(four('d')).NodeNames, ['n1']);
  });

  it('is checked again for waiting pods when the exclusion ends by itself', () => {
    mock.timers.enable({ apis: ['setTimeout'] });
    try {
      const refuser = new Refuser();
      refuser.reject();
      const ended = () => refuser.under.notified.filter((line) => line === 'ended n1').length;
      mock.timers.tick(30_000);
      const before = ended();
      mock.timers.tick(100);
      assert.deepEqual([before, ended()], [0, 1]);
    } finally {
      mock.timers.reset();
    }
  });
});
