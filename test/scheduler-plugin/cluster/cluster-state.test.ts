import assert from 'node:assert/strict';
import type { Pod } from '../../../kube/resources.ts';
import { PLACED_RESOURCE } from '../../../model/names.ts';
import { extenderOf, podOf, statusOf, withUid } from '../extender-fixture.ts';

const UNSCHEDULABLE = {
  phase: 'Pending',
  conditions: [
    {
      type: 'PodScheduled',
      status: 'False',
      reason: 'Unschedulable',
      message: '0/3 nodes are available: 3 too few free CPUs.',
    },
  ],
};
const on = (pod: Pod, nodeName: string): Pod => ({ ...pod, spec: { ...pod.spec, nodeName } });

describe('what those who act hear of a pod', () => {
  const heard = (act: (under: ReturnType<typeof extenderOf>) => void) => {
    const under = extenderOf();
    under.told.length = 0;
    act(under);
    return under.told.filter((line) => !line.startsWith('improved'));
  };
  const pod = withUid(podOf('4'), 'a');
  const asked = withUid(podOf('4', [PLACED_RESOURCE]), 'a');

  const CASES: readonly [string, (under: ReturnType<typeof extenderOf>) => void, readonly string[]][] = [
    ['a pod that the scheduler has not looked at', ({ see }) => see(pod), []],
    ['one that found no node, of which an extender is asked', ({ see }) => see(asked, UNSCHEDULABLE), ['waiting a']],
    ['one that found no node, of which none is asked', ({ see }) => see(pod, UNSCHEDULABLE), []],
    ['one that is bound and about to start', ({ see }) => see(on(pod, 'n1')), ['settled a', 'starting a']],
    ['one that runs', ({ see }) => see(on(pod, 'n1'), { phase: 'Running' }), ['settled a']],
    [
      'one that is being deleted on its node',
      ({ see }) => see(withUid(on(pod, 'n1'), 'a', { deletionTimestamp: '2026-11-01T10:00:00Z' })),
      ['settled a'],
    ],
    [
      'one that its kubelet refused',
      ({ see }) => {
        see(on(pod, 'n1'));
        see(on(pod, 'n1'), { phase: 'Failed', reason: 'SMTAlignmentError' });
      },
      ['settled a', 'starting a', 'reservationEnded a terminal', 'rejected a', 'settled a'],
    ],
  ];
  for (const [name, act, expected] of CASES) it(name, () => assert.deepEqual(heard(act), expected));

  it('a node improves when a flag is taken off it, not when it is set', () => {
    const { state, told } = extenderOf({ nodes: { n1: statusOf() } });
    told.length = 0;
    state.setFlag('n1', 'stale', true);
    assert.deepEqual(told, []);
    state.setFlag('n1', 'stale', false);
    assert.deepEqual(told, ['improved n1']);
  });
});
