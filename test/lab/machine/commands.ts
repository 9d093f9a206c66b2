import { spawn } from 'node:child_process';

/** Maximum characters of the end of a failed command's output. */
const LAST_WORDS = 600;

export interface CommandOptions {
  readonly input?: string | Buffer;
  readonly env?: NodeJS.ProcessEnv;
  readonly cwd?: string;
  readonly signal?: AbortSignal;
}

export class CommandError extends Error {
  readonly status: number | string;

  constructor(command: string, status: number | string, last: string) {
    super(`${command} ended with ${status}: ${last}`);
    this.status = status;
  }
}

/** Runs a command to its end. @returns its output @throws CommandError with the end of its output on failure */
export function execute(file: string, args: readonly string[], options: CommandOptions = {}): Promise<string> {
  const { input, env, cwd, signal } = options;
  return new Promise((resolve, reject) => {
    const child = spawn(file, args, { stdio: 'pipe', env: env ?? process.env, cwd, signal });
    let output = '';
    let errors = '';
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      output += text;
    });
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      errors += text;
    });
    child.on('error', reject);
    // The exit status of a command that ends before it has read its input gives the reason.
    child.stdin.on('error', () => {});
    child.stdin.end(input);
    child.on('close', (status, killed) => {
      if (status === 0) resolve(output);
      else reject(new CommandError(`${file} ${args.at(-1)}`, status ?? killed ?? '', lastWords(errors || output)));
    });
  });
}

const lastWords = (text: string): string => text.trim().slice(-LAST_WORDS);
