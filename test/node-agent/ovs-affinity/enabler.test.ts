import assert from 'node:assert/strict';
import { mkdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { isEnabled, watchEnabler } from '../../../node-agent/ovs-affinity/ovs-affinity.ts';
import { eventually, tempDirectories } from '../support.ts';

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

  it('is watched for its creation and its removal, and not for other files', async () => {
    const directory = temp();
    const stop = new AbortController();
    let changes = 0;
    watchEnabler(join(directory, 'enable'), () => void changes++, stop.signal);
    try {
      const expect = async (work: () => void, what: string) => {
        const before = changes;
        work();
        await eventually(() => changes > before, what);
      };
      await expect(() => writeFileSync(join(directory, 'enable'), '1'), 'the creation');
      await new Promise((resolve) => setTimeout(resolve, 50));
      const before = changes;
      writeFileSync(join(directory, 'other'), '1');
      await new Promise((resolve) => setTimeout(resolve, 50));
      assert.equal(changes, before);
      await expect(() => rmSync(join(directory, 'enable')), 'the removal');
    } finally {
      stop.abort();
    }
  });
});
