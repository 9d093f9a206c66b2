import { execFile } from 'node:child_process';
import { join } from 'node:path';

/**
 * Seconds of a process: elapsed time, which other work on the machine increases, and processor time.
 * @throws Error if it fails
 */
export function measure(args: readonly string[], env: NodeJS.ProcessEnv): Promise<{ wall: number; processor: number }> {
  return new Promise((resolve, reject) => {
    const begun = performance.now();
    const all = ['--require', join(import.meta.dirname, 'usage.cjs'), ...args];
    execFile(process.execPath, all, { env, maxBuffer: 16 * 1024 * 1024 }, (error, _, stderr) => {
      if (error) return reject(new Error(stderr || error.message));
      const { processorTime } = JSON.parse(stderr.trim().split('\n').at(-1) ?? '') as { processorTime: number };
      resolve({ wall: (performance.now() - begun) / 1000, processor: processorTime / 1e6 });
    });
  });
}
