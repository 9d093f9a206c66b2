import assert from 'node:assert/strict';
import Mocha from 'mocha';
import { summaryLines } from './summary.ts';
import { countsOf, runTests, sumOfTallies, type Tally } from './tally.ts';

const EMPTY: Tally = { failed: [], passed: [], skipped: [], seconds: [], missing: [], versions: [] };

describe('the summary of a run', () => {
  it('ends with each failure, where it is and the command that repeats it', () => {
    const failure = {
      file: 'kube/client.test.ts',
      title: 'client retries',
      message: '1 is not 2',
      stack: ['at a.ts:3:1'],
    };
    const missing = [['Helm: put helm on the PATH', 26] as const];
    const lines = summaryLines({ ...EMPTY, failed: [failure], missing }, [
      { name: '1.1', file: 'real/webhook', title: 'pads', code: [] },
    ]);
    assert.match(
      lines[0] ?? '',
      /^skipped, because parts are missing: Helm \(26\); how to install them: .*test-details\.txt$/,
    );
    assert.match(lines[1] ?? '', /1 promises of docs\/maintainers\/conformance\.md/);
    assert.deepEqual(lines.slice(2, -1), [
      '',
      'FAILED kube/client.test.ts: client retries',
      '  1 is not 2',
      '  at a.ts:3:1',
      '  again: npm test -- kube/client.test.ts',
    ]);
  });

  it('fits on a screen however much fails', () => {
    const message = 'line\n'.repeat(1000);
    const failed = Array(30).fill({ file: 'a.test.ts', title: 'a', message, stack: [] });
    const lines = summaryLines({ ...EMPTY, failed }, []);
    assert.equal(lines.filter((line) => line.startsWith('FAILED')).length, 30);
    assert.ok(lines.length < 90, `${lines.length} lines`);
  });

  it('counts tests by file, and failed hooks', async () => {
    const mocha = new Mocha({ reporter: class {} as unknown as typeof Mocha.reporters.Base });
    const suite = Mocha.Suite.create(mocha.suite, 'suite');
    suite.addTest(new Mocha.Test('passes', () => undefined));
    suite.addTest(new Mocha.Test('fails', () => assert.fail('the reason')));
    suite.addTest(new Mocha.Test('is pending'));
    const tally = await runTests(mocha, () => ({ missing: [['QEMU', 1]], versions: [] }));
    assert.deepEqual(countsOf(tally), { passed: 1, failed: 1, skipped: 1 });
    assert.deepEqual(
      tally.failed.map(({ title, message }) => [title, message]),
      [['suite fails', 'the reason']],
    );
    assert.match(tally.failed[0]?.stack[0] ?? '', /^at .*test\/summary\.test\.ts:\d+/);
    assert.deepEqual(sumOfTallies([tally, tally]).missing, [['QEMU', 2]]);
  });
});
