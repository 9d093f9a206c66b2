import { mock } from 'node:test';

/** Timers and the monotonic clock of this process under the control of a test. Sockets stay real. */
export type VirtualTime = ReturnType<typeof startVirtualTime>;

/** Of real time that sockets have after each step. */
const IO_MILLISECONDS = 12;

export function startVirtualTime() {
  const { setTimeout: realTimeout } = globalThis;
  const begun = performance.now();
  let seconds = 0;
  mock.timers.enable({ apis: ['setTimeout', 'setInterval'] });
  const clock = mock.method(performance, 'now', () => begun + seconds * 1000);
  const pass = async (duration: number, step = 1) => {
    for (let left = duration; left > 0; left -= step) {
      const passed = Math.min(step, left);
      seconds += passed;
      mock.timers.tick(passed * 1000);
      await new Promise((resolve) => realTimeout(resolve, IO_MILLISECONDS));
    }
  };
  return {
    /** Virtual seconds since the start. */
    get seconds() {
      return seconds;
    },
    pass,
    /** Passes time until the promise is settled. */
    async until<T>(work: Promise<T>): Promise<T> {
      let isSettled = false;
      const settled = work.finally(() => {
        isSettled = true;
      });
      settled.catch(() => undefined);
      while (!isSettled) await pass(0.25);
      return settled;
    },
    end() {
      mock.timers.reset();
      clock.mock.restore();
    },
  };
}
