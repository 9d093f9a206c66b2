import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { buildOnce, dist } from '../support/bundles.ts';

/** The result of a command. */
export interface Ran {
  readonly status: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** It ends with this status and one line on standard error, and prints nothing else. */
export function assertFails({ status, stdout, stderr }: Ran, expected: number, message: RegExp): void {
  assert.deepEqual([status, stdout], [expected, ''], stderr);
  assert.match(stderr, /^plumbline: .+\n$/);
  assert.match(stderr, message);
}

export interface RunOptions {
  /** A kubeconfig; without one there is no cluster. */
  readonly kubeconfig?: string;
  readonly env?: Readonly<Record<string, string>>;
  /** The content of standard input. */
  readonly input?: string;
  readonly program?: string;
}

/** The bundled command, as users run it. `before(buildCli)` builds it. */
export const PROGRAM = join(dist, 'plumbline.mjs');
export const buildCli = buildOnce;

/** Runs `plumbline` as a separate process, without any cluster except the given one. */
export function plumbline(args: readonly string[], given: RunOptions = {}): Promise<Ran> {
  const { kubeconfig, env = {}, input, program = PROGRAM } = given;
  const own: NodeJS.ProcessEnv = { ...process.env, HOME: '/nonexistent', KUBECONFIG: kubeconfig, ...env };
  for (const name of ['KUBERNETES_SERVICE_HOST', 'NO_COLOR', 'FORCE_COLOR', 'COLUMNS']) {
    if (env[name] === undefined) delete own[name];
  }
  const options = { env: own, maxBuffer: 64 * 1024 * 1024 };
  return new Promise((resolve) => {
    const child = execFile(process.execPath, [program, ...args], options, (error, stdout, stderr) => {
      resolve({ status: error === null ? 0 : typeof error.code === 'number' ? error.code : 1, stdout, stderr });
    });
    child.stdin?.end(input ?? '');
  });
}
