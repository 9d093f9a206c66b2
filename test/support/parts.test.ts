import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { root } from './bundles.ts';

const RUN = ['--import', 'tsx', join(root, 'test/run.ts'), 'lanes.test.ts'];

describe('npm test -- --require', function () {
  this.timeout(300_000);

  it('exits with 1 at once and names the missing parts', () => {
    // Without a PATH, nothing of Debian is found, except below /usr/sbin.
    const { status, stderr, stdout } = spawnSync(process.execPath, [...RUN, '--require', 'all'], {
      cwd: root,
      env: { PATH: '/nowhere', HOME: process.env['HOME'] ?? '/' },
      encoding: 'utf8',
    });
    assert.equal(status, 1, stdout);
    assert.match(stderr, /^Chromium is required and missing: npm run test:setup/m);
    assert.match(stderr, /^the real KubeVirt is required and missing: put virt-api/m);
    assert.equal(stdout, '');
  });

  it('refuses unknown parts', () => {
    const { status, stderr } = spawnSync(process.execPath, [...RUN, '--require', 'some'], {
      cwd: root,
      encoding: 'utf8',
    });
    assert.equal(status, 2);
    assert.match(stderr, /--require: some is none of packaged, all/);
  });

  it('is used by CI', () => {
    const script = readFileSync(join(root, '.ci/run'), 'utf8');
    assert.match(script, /npm test -- --lanes --require packaged$/m);
  });
});
