import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { endGroup } from './children.ts';
import { eventually } from './eventually.ts';
import { needs } from './parts.ts';

const LEAVES_CHILDREN = join(import.meta.dirname, 'fixtures/leaves-children.ts');

/** Nor is it a zombie for which its new parent has not yet waited. */
const runs = (pid: number) =>
  existsSync(`/proc/${pid}`) && !/\) Z /.test(quietly(() => readFileSync(`/proc/${pid}/stat`, 'utf8')));

function quietly(read: () => string): string {
  try {
    return read();
  } catch {
    return ') Z ';
  }
}

describe('processes of tests', () => {
  needs('linux');

  for (const [name, end] of [
    ['Ctrl-C', 'SIGINT'],
    ['a signal to end', 'SIGTERM'],
    ['a failure', undefined],
  ] as const) {
    it(`end with the run at ${name}: a child, one with its own session and one without a parent, all in endless loops`, async () => {
      const args = ['--import', 'tsx', LEAVES_CHILDREN, end === undefined ? 'fails' : 'continues'];
      const run = spawn(process.execPath, args, { stdio: ['pipe', 'pipe', 'ignore'] });
      let said = '';
      run.stdout.setEncoding('utf8').on('data', (chunk: string) => {
        said += chunk;
      });
      const exited = once(run, 'exit');
      await eventually(() => said.split('\n').length === 5, 'three children');
      const [own = 0, ...pids] = said.trim().split('\n').map(Number);
      assert.equal(pids.filter(runs).length, 3);
      if (end === undefined) run.stdin.write('now\n');
      else process.kill(own, end);
      await exited;
      await eventually(() => !pids.some(runs), 'ended');
    });
  }

  it('of a group end with its leader', async () => {
    const leader = spawn('sh', ['-c', 'sleep 600 & echo $!; wait'], {
      stdio: ['ignore', 'pipe', 'ignore'],
      detached: true,
    });
    const [line] = (await once(leader.stdout, 'data')) as [Buffer];
    assert.ok(runs(Number(line)));
    endGroup(leader);
    await eventually(() => !runs(Number(line)), 'ended');
    endGroup(leader);
  });
});
