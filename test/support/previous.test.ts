import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { tempDirectories } from './files.ts';
import { newestRelease } from './previous.ts';

describe('the release before a commit', () => {
  const temp = tempDirectories();

  it('is the newest release tag that the commit descends from, except its own', () => {
    const cwd = temp();
    const identity = ['-c', 'user.name=Test', '-c', 'user.email=test@localhost'];
    const git = (...args: string[]) => execFileSync('git', [...identity, ...args], { cwd, stdio: 'pipe' });
    const commit = (...tags: string[]) => {
      git('commit', '--allow-empty', '--message', 'next');
      for (const tag of tags) git('tag', tag);
    };
    git('init', '--initial-branch', 'main');
    commit();
    assert.equal(newestRelease(cwd), undefined);
    commit('v0.9.1', 'v0.10.0-rc.1', 'view');
    commit('v0.10.0');
    git('checkout', '--detach');
    commit('v0.11.0');
    git('checkout', 'main');
    assert.equal(newestRelease(cwd), 'v0.9.1', 'at the commit of v0.10.0');
    commit();
    assert.equal(newestRelease(cwd), 'v0.10.0', 'and v0.11.0 is on another branch');
  });
});
