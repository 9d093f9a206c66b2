import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { closeSync, openSync } from 'node:fs';
import { join } from 'node:path';
import { lockHolder, tryLockFile } from '../../native/file-lock.ts';
import { root } from '../support/bundles.ts';
import { tempDirectories } from '../support/files.ts';

const MODULE = join(root, 'native/file-lock.ts');

/** What another process finds: the holder of the lock, whether it can lock the file, and the holder afterwards. */
function seenElsewhere(path: string): string {
  const program = `import { openSync } from 'node:fs';
    import { lockHolder, tryLockFile } from ${JSON.stringify(MODULE)};
    const file = openSync(${JSON.stringify(path)}, 'a');
    console.log(lockHolder(file), tryLockFile(file), lockHolder(file));`;
  const node = ['--import', 'tsx', '--input-type=module', '-e', program];
  return execFileSync(process.execPath, node, { cwd: root, encoding: 'utf8' }).trim();
}

describe('the lock of a file', () => {
  const temp = tempDirectories();

  it('is that of one process until it closes the file, and names it to others', () => {
    const path = join(temp(), 'lock');
    const file = openSync(path, 'a');
    assert.equal(lockHolder(file), undefined);
    assert.equal(tryLockFile(file), true);
    assert.equal(seenElsewhere(path), `${process.pid} false ${process.pid}`);
    assert.equal(lockHolder(file), undefined, 'its own lock is no obstacle');
    closeSync(file);
    assert.equal(seenElsewhere(path), 'undefined true undefined');
  });

  it('cannot be had of a closed file, and the error has its number', () => {
    const file = openSync(join(temp(), 'lock'), 'a');
    closeSync(file);
    assert.throws(() => tryLockFile(file), /fcntl\(F_SETLK\): errno 9, see errno\(3\)/);
    assert.throws(() => lockHolder(file), /fcntl\(F_GETLK\): errno 9, see errno\(3\)/);
  });
});
