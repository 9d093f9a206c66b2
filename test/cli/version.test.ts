import assert from 'node:assert/strict';
import { buildCli, plumbline } from './run.ts';

describe('plumbline version', function () {
  this.timeout(120_000);
  before(buildCli);

  it('prints the version as text and as data', async () => {
    const { stdout } = await plumbline(['version']);
    assert.match(stdout, /^plumbline \d+\.\d+\.\d+\S*, Node\.js v\d+\.\d+\.\d+\n$/);
    const { stdout: json } = await plumbline(['version', '-o', 'json']);
    assert.deepEqual(Object.keys(JSON.parse(json)), ['version', 'node']);
  });
});
