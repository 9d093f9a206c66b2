import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { checkLastRun, recordRun, TIERS } from './last-run.ts';

describe('the record of a tier’s last run', () => {
  let checkout = '';
  beforeEach(() => {
    checkout = mkdtempSync(join(tmpdir(), 'plumbline-last-run-'));
    for (const folder of [...TIERS.real.folders, 'test/real']) mkdirSync(join(checkout, folder), { recursive: true });
    const git = (...args: string[]) => execFileSync('git', args, { cwd: checkout, stdio: 'ignore' });
    git('init');
    git('-c', 'user.name=a', '-c', 'user.email=a@example.com', 'commit', '--allow-empty', '--message', 'first');
  });
  afterEach(() => rmSync(checkout, { recursive: true }));

  it('is current until a file of the tier’s folders changes, which it names', () => {
    assert.deepEqual(checkLastRun('real', checkout), {
      isCurrent: false,
      line: 'real: no run is recorded: npm test -- real --record',
    });
    recordRun('real', { passed: 12, failed: 0, skipped: 1 }, [['kube-apiserver', 'v1.36.3']], checkout);
    writeFileSync(join(checkout, 'README.md'), 'changed');
    const { isCurrent, line } = checkLastRun('real', checkout);
    assert.equal(isCurrent, true);
    assert.match(
      line,
      /^real: last run \d{4}-\d\d-\d\d, commit [0-9a-f]{12}, kube-apiserver v1\.36\.3: 12 passed, 0 f/,
    );
    writeFileSync(join(checkout, 'webhook', 'app.ts'), 'changed');
    assert.equal(checkLastRun('real', checkout).isCurrent, false);
    assert.match(checkLastRun('real', checkout).line, /; changed since: webhook\/: npm test -- real --record$/);
  });
});
