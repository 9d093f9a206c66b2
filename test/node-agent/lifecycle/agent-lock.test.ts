import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdirSync, rmSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { mock } from 'node:test';
import { AgentLock } from '../../../node-agent/lifecycle/agent-lock.ts';
import { recordingLogger, tempDirectories, turns } from '../support.ts';

/** Locks the file in another process for as long as its input is open. @returns whether it got the lock */
function canLockElsewhere(path: string): boolean {
  const script = `use Fcntl; open(my $f, '>>', $ARGV[0]) or die;
    my $lock = pack('s s x4 q q i x4', F_WRLCK, 0, 0, 0, 0); print fcntl($f, F_SETLK, $lock) ? 'yes' : 'no';`;
  return execFileSync('perl', ['-e', script, path], { encoding: 'utf8' }) === 'yes';
}

describe('the agent’s lock without a usable file', () => {
  const temp = tempDirectories();
  let stateDir: string;
  beforeEach(() => {
    stateDir = join(temp(), 'state');
  });

  const faults: [what: string, spoil: (path: string) => unknown, reason: RegExp][] = [
    ['a directory that leads to itself', () => symlinkSync(stateDir, stateDir), /ELOOP/],
    ['a pipe', (path) => execFileSync('sh', ['-c', 'mkdir "$1" && mkfifo "$2"', 'sh', stateDir, path]), /ENXIO/],
    ['a directory', (path) => mkdirSync(path, { recursive: true }), /EISDIR/],
  ];
  for (const [what, spoil, reason] of faults) {
    it(`is ${what}: the agent works, says why, and has the lock as soon as it can`, async () => {
      const path = join(stateDir, 'agent.lock');
      spoil(path);
      const logged = recordingLogger();
      mock.timers.enable({ apis: ['setTimeout'] });
      try {
        const lock = new AgentLock(stateDir, logged.log);
        await lock.acquired(new AbortController().signal);
        assert.equal(lock.problem, undefined);
        assert.match(String(logged.lines[0]?.['reason']), reason);
        rmSync(stateDir, { recursive: true });
        mock.timers.tick(10_000);
        await turns();
        assert.equal(canLockElsewhere(path), false, 'another agent would wait');
        lock.release();
        assert.equal(canLockElsewhere(path), true);
      } finally {
        mock.timers.reset();
      }
    });
  }
});
