import assert from 'node:assert/strict';
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { eventually } from '../../support/eventually.ts';

const SAMPLER = fileURLToPath(new URL('../fixtures/mask-sampler.cjs', import.meta.url));

/** Watches from outside, each millisecond, that no thread of the processes may run on the CPU. */
export async function watchMasks(cpu: number, pids: readonly number[]) {
  const child = fork(SAMPLER, [cpu, ...pids].map(String), { execArgv: [] });
  await once(child, 'message');
  const request = async (message: 'stop' | 'report') => {
    const answered = once(child, 'message');
    child.send(message);
    const [answer] = (await answered) as [{ samples: number; seen: string[] }];
    return answer;
  };
  return {
    /** Ends the watch, whatever it saw. */
    end: () => void child.kill('SIGKILL'),
    /** Ends the watch after the given number of further samples. */
    async sawNone(more = 0): Promise<void> {
      const { samples } = await request('report');
      await eventually(async () => (await request('report')).samples >= samples + more, `${more} samples`);
      assert.deepEqual((await request('stop')).seen, []);
    },
  };
}
