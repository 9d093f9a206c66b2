import { type ChildProcess, spawn } from 'node:child_process';
import { PROGRAM } from './run.ts';

/** `plumbline console` as users run it. */
export interface ConsoleProcess {
  readonly child: ChildProcess;
  readonly url: string;
  /** Standard error so far. */
  stderr(): string;
  /** Sends the signal. @returns the exit status */
  end(signal: NodeJS.Signals): Promise<number | null>;
}

/** @throws Error with its output if it ends before it serves */
export function startConsole(kubeconfig: string, args: readonly string[] = []): Promise<ConsoleProcess> {
  const { KUBERNETES_SERVICE_HOST: _, ...rest } = process.env;
  const env = { ...rest, HOME: '/nonexistent', KUBECONFIG: kubeconfig };
  const child = spawn(process.execPath, [PROGRAM, 'console', ...args], { env, stdio: ['ignore', 'pipe', 'pipe'] });
  const ended = new Promise<number | null>((resolve) => child.once('exit', resolve));
  let stdout = '';
  let stderr = '';
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    stderr += text;
  });
  return new Promise((resolve, reject) => {
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      stdout += text;
      const url = /^console: (http:\/\/127\.0\.0\.1:\d+\/)$/m.exec(stdout)?.[1];
      if (url === undefined) return;
      const end = (signal: NodeJS.Signals) => {
        child.kill(signal);
        return ended;
      };
      resolve({ child, url, stderr: () => stderr, end });
    });
    void ended.then((status) => reject(new Error(`it ended with ${status}: ${stdout}${stderr}`)));
  });
}
