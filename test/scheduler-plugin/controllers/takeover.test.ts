import assert from 'node:assert/strict';
import type { Pod } from '../../../kube/resources.ts';
import { NeedsReader } from '../../../scheduler-plugin/cluster/pod-needs.ts';
import { observedPod, podViewOf } from '../../../scheduler-plugin/cluster/pod-view.ts';
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

  const cases: { what: string; pod: Pod; status: object; waits: boolean }[] = [
    { what: 'a launcher', pod: web('vm', [KVM]), status: unscheduled('Unschedulable'), waits: true },
    {
      what: 'a launcher with dedicated CPUs',
      pod: podOf('4', [KVM]),
      status: unscheduled('Unschedulable'),
      waits: true,
    },
    {
      what: 'an ordinary pod that was refused for a DPU',
      pod: web('web'),
      status: unscheduled('Unschedulable', '0/3 nodes are available: 3 DPU not ready: dead, last renewal 60 s ago.'),
      waits: true,
    },
    { what: 'a gated launcher', pod: podOf('4', [KVM]), status: unscheduled('SchedulingGated'), waits: false },
    { what: 'a pod that no scheduler asks about', pod: podOf('4'), status: unscheduled('Unschedulable'), waits: false },
  ];
  for (const { what, pod, status, waits } of cases) {
    it(`${what} ${waits ? 'may have been refused by an extender' : 'does not count as refused by an extender'}`, () => {
      assert.equal(viewOf(pod, status)?.mayBeRefused ?? false, waits);
    });
  }
});

describe('a takeover', () => {
  const launcher = (uid: string) => viewOf(web(uid, [KVM]), unscheduled('Unschedulable'));
  const setUp = () => {
    const waiting: string[] = [];
    const clock = { now: 100 };
    const pods = [launcher('before'), undefined, viewOf(podOf('4'), {})];
    const recheck = new Recheck({
      wouldFit: () => false,
      touch: async () => true,
      active: () => true,
      now: () => clock.now,
    });
    recheck.mayWait = ({ uid }) => void waiting.push(uid);
    return { recheck, pods, waiting, clock };
  };

  it('rechecks pods that the previous replica may have refused, also if their conditions arrive late', () => {
    const { recheck, pods, waiting, clock } = setUp();
    recheck.takeOver(pods);
    clock.now += 5;
    recheck.unschedulable(launcher('late')!);
    assert.deepEqual(waiting, ['before', 'late']);
  });

  it('later ignores conditions: the scheduler’s calls show which pods this replica refused', () => {
    const { recheck, pods, waiting, clock } = setUp();
    recheck.unschedulable(launcher('not-active-yet')!);
    recheck.takeOver(pods);
    clock.now += 60;
    recheck.unschedulable(launcher('refused-by-taints')!);
    assert.deepEqual(waiting, ['before']);
  });
});
