import { type ExecFileOptions, execFile } from 'node:child_process';

export interface Ran {
  readonly status: number;
  /** What it printed, and what it wrote to standard error after it. */
  readonly output: string;
}

/** Runs a command line as a user types it. @throws Error if it does not end within the timeout of the options */
export function runLine(line: string, options: ExecFileOptions = {}): Promise<Ran> {
  return new Promise((resolve, reject) => {
    const all = { maxBuffer: 2 ** 28, killSignal: 'SIGKILL', ...options } as const;
    execFile('bash', ['-o', 'pipefail', '-c', line], all, (error, stdout, stderr) => {
      const output = `${stdout}${stderr}`;
      if (error?.killed) reject(new Error(`it did not end in time; it printed: ${output}`));
      else resolve({ status: error === null ? 0 : typeof error.code === 'number' ? error.code : 1, output });
    });
  });
}
