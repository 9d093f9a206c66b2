import assert from 'node:assert/strict';
import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { isEnabled } from '../../../node-agent/ovs-affinity/ovs-affinity.ts';
import { tempDirectories } from '../support.ts';

describe('the enabler file', () => {
  const temp = tempDirectories();

  it('enables if it is a file with content', () => {
    const directory = temp();
    const file = join(directory, 'enable');
    assert.equal(isEnabled(file), false, 'missing');
    writeFileSync(file, '');
    assert.equal(isEnabled(file), false, 'empty');
    writeFileSync(file, '1');
    assert.equal(isEnabled(file), true);
    assert.equal(isEnabled(join(file, 'below-a-file')), false);
    mkdirSync(join(directory, 'folder/child'), { recursive: true });
    assert.equal(isEnabled(join(directory, 'folder')), false, 'a directory');
  });

  it('says neither if its state cannot be determined', () => {
    const directory = temp();
    symlinkSync('loop', join(directory, 'loop'));
    assert.equal(isEnabled(join(directory, 'loop')), undefined);
  });
});
