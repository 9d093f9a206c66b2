import assert from 'node:assert/strict';
import { schedulerWarnings, schedulingOf } from '../../../model/admission/scheduling.ts';

const OURS = 'plumbline-scheduler';
const ready = { schedulerName: OURS, away: undefined };
const away = { schedulerName: OURS, away: 'no replica leads' };
const unused = { schedulerName: '', away: 'no replica leads' };

describe('the scheduler of a pod', () => {
  for (const [what, own, facts, set, reasons] of [
    ['the default', 'default-scheduler', ready, OURS, []],
    ['Plumbline’s, which does not work', OURS, away, undefined, ['SchedulerNotReady']],
    ['the default, and Plumbline’s does not work', 'default-scheduler', away, OURS, ['SchedulerNotReady']],
    ['another one', 'volcano', away, undefined, ['OtherScheduler']],
    ['none, and Plumbline’s is not used', undefined, unused, undefined, []],
  ] as const) {
    it(`${what}: ${set === undefined ? 'stays' : 'is replaced'}`, () => {
      const scheduling = schedulingOf(own, facts);
      assert.deepEqual([scheduling.set, scheduling.findings.map(({ reason }) => reason)], [set, reasons]);
    });
  }

  it('causes a warning if a template names another one', () => {
    assert.deepEqual(schedulerWarnings('volcano', OURS), [
      'spec.schedulerName: "volcano" does not check kubelets, networks and DPUs unless it asks Plumbline\'s extender; remove it for plumbline-scheduler',
    ]);
    for (const [own, name] of [
      ['volcano', ''],
      [OURS, OURS],
      [undefined, OURS],
    ] as const)
      assert.deepEqual(schedulerWarnings(own, name), []);
  });
});
