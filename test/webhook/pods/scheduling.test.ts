import assert from 'node:assert/strict';
import { DECISION_ANNOTATION } from '../../../model/names.ts';
import type { SchedulerRoute } from '../../../webhook/pods/gather.ts';
import { createPodRouting } from '../../../webhook/pods/mutate-pod.ts';
import { mutationOf, patched, patchOf, podVector, requestFor, type TestPod } from '../launcher-fixture.ts';

const OURS = 'plumbline-scheduler';
const WORKING: SchedulerRoute = { schedulerName: OURS, schedulerAway: () => undefined };
const AWAY: SchedulerRoute = { schedulerName: OURS, schedulerAway: () => 'no replica of it leads' };
const OFF: SchedulerRoute = { schedulerName: '', schedulerAway: () => 'not asked' };

function launcher(schedulerName?: string): TestPod {
  const pod = podVector();
  delete pod.spec['schedulerName'];
  return schedulerName === undefined ? pod : { ...pod, spec: { ...pod.spec, schedulerName } };
}

function routing(route: SchedulerRoute) {
  return { route: createPodRouting(route), mutate: mutationOf({ route }) };
}

const decisionOf = (pod: TestPod) => pod.metadata.annotations[DECISION_ANNOTATION] ?? '';

describe('the scheduler of a launcher', () => {
  for (const way of ['mutate', 'route'] as const) {
    it(`${way}: becomes Plumbline’s for a launcher that names none`, async () => {
      const reviews = routing(WORKING);
      const pod = launcher();
      const after = patched(pod, await reviews[way](requestFor(pod)));
      assert.equal(after.spec['schedulerName'], OURS);
      assert.doesNotMatch(decisionOf(after), /Scheduler/);
      assert.deepEqual(patchOf(await reviews[way](requestFor(after))), [], 'a second pass changes nothing');
    });
  }

  it('stays the user’s choice, with a warning and a note in the decision', async () => {
    for (const way of ['mutate', 'route'] as const) {
      const reviews = routing(WORKING);
      const pod = launcher('volcano');
      const answer = await reviews[way](requestFor(pod));
      const after = patched(pod, answer);
      assert.equal(after.spec['schedulerName'], 'volcano');
      assert.match(answer.warnings?.join() ?? '', /"volcano".*remove it for plumbline-scheduler/);
      assert.equal(decisionOf(after).includes('"reason":"OtherScheduler"'), way === 'mutate');
    }
  });

  it('is the only change of routing, which ignores other pods, refuses nothing, and can be turned off', async () => {
    const { route } = routing(WORKING);
    assert.deepEqual(patchOf(await route(requestFor(launcher()))), [
      { op: 'add', path: '/spec/schedulerName', value: OURS },
    ]);
    const hotPlug = podVector('hp-volume-pod');
    assert.deepEqual(await route(requestFor(hotPlug)), { allowed: true });
    const web = { metadata: { name: 'web' }, spec: { containers: [{ name: 'web' }] } };
    assert.deepEqual(await route(requestFor(web)), { allowed: true });
    assert.deepEqual(await route(requestFor({ spec: 'nonsense' })), { allowed: true });
    for (const way of ['mutate', 'route'] as const) {
      const pod = launcher('default-scheduler');
      const after = patched(pod, await routing(OFF)[way](requestFor(pod)));
      assert.equal(after.spec['schedulerName'], 'default-scheduler');
    }
  });

  it('is set only when pods are created, not for updates or other kinds', async () => {
    const { route } = routing(WORKING);
    assert.deepEqual(await route(requestFor(launcher(), { operation: 'UPDATE' })), { allowed: true });
    const kind = { group: 'kubevirt.io', version: 'v1', kind: 'VirtualMachineInstance' };
    assert.deepEqual(await route(requestFor(launcher(), { kind })), { allowed: true });
  });

  it('is named in a warning while it is down, and not in the decision, which outlives that', async () => {
    for (const way of ['mutate', 'route'] as const) {
      const reviews = routing(AWAY);
      const pod = launcher();
      const answer = await reviews[way](requestFor(pod));
      const after = patched(pod, answer);
      assert.equal(after.spec['schedulerName'], OURS);
      assert.match(answer.warnings?.join() ?? '', /waits for plumbline-scheduler: no replica of it leads.*kubectl/);
      assert.doesNotMatch(decisionOf(after), /no replica/);
    }
  });
});
