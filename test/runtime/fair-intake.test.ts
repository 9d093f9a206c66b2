import assert from 'node:assert/strict';
import { mock } from 'node:test';
import { FairIntake } from '../../runtime/fair-intake.ts';

describe('the intake of reports', () => {
  const times = { now: 0, spent: 0 };
  beforeEach(() => {
    mock.timers.enable({ apis: ['setTimeout'] });
    mock.method(performance, 'now', () => times.now);
    mock.method(process, 'cpuUsage', () => ({ user: times.spent * 1000, system: 0 }));
  });
  afterEach(() => {
    mock.timers.reset();
    mock.restoreAll();
  });

  it('limits a node that floods it to its share, takes its newest report, and lets other nodes through', () => {
    const taken: string[] = [];
    const intake = new FairIntake<string>((node, report) => {
      taken.push(`${node} ${report}`);
      const milliseconds = node === 'noisy' ? 50 : 0.2;
      times.now += milliseconds;
      times.spent += milliseconds;
    });
    for (let i = 0; i < 10_000; i++) intake.offer('noisy', `${i}`);
    intake.offer('quiet', 'a');
    const noisy = taken.filter((one) => one.startsWith('noisy'));
    assert.ok(noisy.length <= 6, `${noisy.length} reports of 50 ms each`);
    assert.ok(taken.includes('quiet a'));
    const before = taken.length;
    times.now += 60_000;
    mock.timers.tick(1000);
    assert.equal(taken.at(-1), 'noisy 9999');
    assert.equal(taken.length, before + 1, 'one report waits, whatever was sent');
  });

  it('does not charge a node for the time in which this process had no processor', () => {
    const taken: string[] = [];
    const intake = new FairIntake<string>((_, report) => {
      taken.push(`${report}`);
      times.now += 2700;
      times.spent += 1;
    });
    intake.offer('n1', 'first');
    intake.offer('n1', 'second');
    assert.deepEqual(taken, ['first', 'second']);
  });
});
