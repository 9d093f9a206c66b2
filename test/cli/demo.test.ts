import assert from 'node:assert/strict';
import { readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { tempDirectories } from '../support/files.ts';
import { assertFails, buildCli, plumbline } from './run.ts';

describe('plumbline demo --write-kubeconfig', function () {
  this.timeout(120_000);
  const temp = tempDirectories();
  before(buildCli);

  it('neither overwrites nor removes a file that exists, or a link', async () => {
    const folder = temp();
    const config = join(folder, 'config');
    writeFileSync(config, 'mine');
    symlinkSync(config, join(folder, 'link'));
    symlinkSync(join(folder, 'nothing'), join(folder, 'dangling'));
    for (const [flag, name, message] of [
      ['--keep', 'config', /config exists, and is not overwritten/],
      ['--keep', 'link', /link exists, and is not overwritten/],
      ['--keep', 'dangling', /dangling exists, and is not overwritten/],
      ['--keep', 'missing/config', /cannot create .*missing\/config: ENOENT/],
      ['--json', 'new', /--write-kubeconfig needs --keep or --console/],
    ] as const) {
      assertFails(await plumbline(['demo', flag, '--write-kubeconfig', join(folder, name)]), 2, message);
    }
    assert.equal(readFileSync(config, 'utf8'), 'mine');
    assert.deepEqual(readdirSync(folder).sort(), ['config', 'dangling', 'link']);
  });
});
