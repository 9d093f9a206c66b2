import assert from 'node:assert/strict';
import type { Pod } from '../../../kube/resources.ts';
import { NeedsReader } from '../../../scheduler-plugin/cluster/pod-needs.ts';
import { observedPod, type PodView, podViewOf } from '../../../scheduler-plugin/cluster/pod-view.ts';
import { Recheck } from '../../../scheduler-plugin/controllers/recheck.ts';
import { podOf, withUid } from '../extender-fixture.ts';

const KVM = 'devices.kubevirt.io/kvm';
const reader = new NeedsReader('all');
const unscheduled = (reason: string, message = '0/60 nodes are available: 60 node(s) had untolerated taint(s).') => ({
  conditions: [{ type: 'PodScheduled', status: 'False', reason, message }],
});
/** A pod that shares CPUs, like most pods of a cluster. */
const web = (uid: string, resources: readonly string[] = []): Pod => withUid(podOf('500m', resources), uid);
const viewOf = (pod: Pod, status: object) => podViewOf(observedPod.parse({ ...pod, status }), reader);

describe('waiting pods in the API server', () => {
  it('are ignored if the scheduler does not ask an extender about them', () => {
    assert.equal(viewOf(web('web'), unscheduled('Unschedulable')), undefined, 'fits nowhere');
    assert.equal(viewOf(web('gated'), unscheduled('SchedulingGated', 'Scheduling is blocked')), undefined);
    assert.equal(viewOf(web('gated-vm', [KVM]), unscheduled('SchedulingGated')), undefined);
    assert.equal(viewOf(web('failed', [KVM]), unscheduled('SchedulerError')), undefined);
  });

  const cases: readonly (readonly [what: string, pod: Pod, status: object, waits: boolean])[] = [
    ['a launcher', web('vm', [KVM]), unscheduled('Unschedulable'), true],
    [
      'an ordinary pod that was refused for a DPU',
      web('web'),
      unscheduled('Unschedulable', '0/3 nodes are available: 3 DPU not ready: dead, last renewal 60 s ago.'),
      true,
    ],
    ['a gated launcher', podOf('4', [KVM]), unscheduled('SchedulingGated'), false],
    ['a pod that no scheduler asks about', podOf('4'), unscheduled('Unschedulable'), false],
  ];
  for (const [what, pod, status, waits] of cases) {
    it(`${what} ${waits ? 'may have been refused by an extender' : 'does not count as refused by an extender'}`, () => {
      assert.equal(viewOf(pod, status)?.mayBeRefused ?? false, waits);
    });
  }
});

describe('a takeover', () => {
  const viewOfLauncher = (uid: string, more: Partial<PodView> = {}): PodView => ({
    ...viewOf(web(uid, [KVM]), unscheduled('Unschedulable'))!,
    ...more,
  });

  it('rechecks pods that the previous replica may have refused, also if their conditions arrive within ten seconds', () => {
    const waiting: string[] = [];
    const state = { now: 100, active: true };
    const recheck = new Recheck({
      wouldFit: () => false,
      touch: async () => true,
      active: () => state.active,
      now: () => state.now,
    });
    recheck.mayWait = ({ uid }) => void waiting.push(uid);
    recheck.unschedulable(viewOfLauncher('not-active-yet'));
    recheck.takeOver([
      viewOfLauncher('before'),
      undefined,
      viewOf(podOf('4'), {}),
      viewOfLauncher('deleting', { deleting: true }),
      viewOfLauncher('ended', { terminal: true }),
    ]);
    state.now += 9.9;
    recheck.unschedulable(viewOfLauncher('late'));
    state.active = false;
    recheck.unschedulable(viewOfLauncher('standby'));
    state.active = true;
    state.now += 0.1;
    recheck.unschedulable(viewOfLauncher('too-late'));
    assert.deepEqual(waiting, ['before', 'late']);
  });
});
