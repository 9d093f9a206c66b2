import assert from 'node:assert/strict';
import { untilLeft } from '../../../node-agent/lifecycle/vacate.ts';
import { set } from '../support.ts';

describe('CPUs that are left', () => {
  /** Each attempt takes half a second. */
  const leave = (staysFor: number) => {
    let attempts = 0;
    const move = () => (attempts++ < staysFor ? ['40 a', '41 b'] : []);
    return untilLeft(set('2-3'), { subject: 'interrupts do', move, nowSeconds: () => attempts / 2 });
  };

  it('are left as soon as nothing stays there, and the time is measured', async () => {
    assert.deepEqual([await leave(0), await leave(3)], [0.5, 2]);
  });

  it('are not awaited for longer than two seconds; what stays is named', async () => {
    const message = 'interrupts do not leave CPUs 2-3: 40 a, 41 b';
    await assert.rejects(leave(4), { name: 'VacateError', code: 'vacate', message });
  });
});
