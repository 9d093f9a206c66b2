import assert from 'node:assert/strict';
import { createFairIntake } from '../../runtime/fair-intake.ts';

describe('the intake of reports', () => {
  it('limits a node that floods it to its share, takes its newest report, and lets other nodes through', async () => {
    let clock = 0;
    const taken: string[] = [];
    const intake = createFairIntake<string>(
      (node, report) => {
        taken.push(`${node} ${report}`);
        clock += node === 'noisy' ? 50 : 0.2;
      },
      { now: () => clock, spent: () => clock },
    );
    for (let i = 0; i < 10_000; i++) intake.offer('noisy', `${i}`);
    intake.offer('quiet', 'a');
    const noisy = taken.filter((one) => one.startsWith('noisy'));
    assert.ok(noisy.length <= 6, `${noisy.length} reports of 50 ms each`);
    assert.ok(taken.includes('quiet a'));
    assert.equal(intake.waiting, 1, 'one report waits, whatever was sent');
    clock += 60_000;
    await new Promise((resolve) => setTimeout(resolve, 250));
    assert.equal(taken.at(-1), 'noisy 9999');
    assert.equal(intake.waiting, 0);
    intake.stop();
  });

  it('does not charge a node for the time in which this process had no processor', () => {
    const [times, taken] = [{ now: 0, spent: 0 }, [] as string[]];
    const intake = createFairIntake<string>(
      (_, report) => {
        taken.push(`${report}`);
        times.now += 2700;
        times.spent += 1;
      },
      { now: () => times.now, spent: () => times.spent },
    );
    intake.offer('n1', 'first');
    intake.offer('n1', 'second');
    assert.deepEqual(taken, ['first', 'second']);
    intake.stop();
  });
});
