import assert from 'node:assert/strict';
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';

const SAMPLER = fileURLToPath(new URL('../fixtures/mask-sampler.cjs', import.meta.url));

/** Watches, each millisecond and from outside, that no thread of the processes may run on the CPU. */
export async function watchMasks(cpu: number, pids: readonly number[]) {
  const child = fork(SAMPLER, [cpu, ...pids].map(String), { execArgv: [] });
  await once(child, 'message');
  return {
    /** Ends the watch, whatever it saw. */
    end: () => void child.kill('SIGKILL'),
    /** Ends the watch. @returns the number of samples */
    async sawNone(): Promise<number> {
      const answered = once(child, 'message');
      child.send('stop');
      const [{ samples, seen }] = (await answered) as [{ samples: number; seen: string[] }];
      assert.deepEqual(seen, []);
      return samples;
    },
  };
}
