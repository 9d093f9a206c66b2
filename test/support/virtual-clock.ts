import { mock } from 'node:test';

/** For a suite: a clock and timers that pass only when a test says so. */
export function useVirtualClock(startSeconds = 1000) {
  const clock = {
    /** Of the monotonic clock. */
    seconds: startSeconds,
    /** Lets time pass, in steps, and after each what is due run. */
    async pass(seconds: number, step = seconds): Promise<void> {
      for (let passed = 0; passed < seconds; passed += step) {
        clock.seconds += step;
        mock.timers.tick(step * 1000);
        await turns();
      }
    },
  };
  beforeEach(() => {
    clock.seconds = startSeconds;
    mock.timers.enable({ apis: ['setTimeout', 'setInterval'] });
    mock.method(performance, 'now', () => clock.seconds * 1000);
  });
  // First the methods, of which setInterval is a fake one, then the timers.
  afterEach(() => mock.reset());
  return clock;
}

/** Lets pending work reach its next wait. */
export async function turns(): Promise<void> {
  for (let i = 0; i < 20; i++) await new Promise((resolve) => setImmediate(resolve));
}
