import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { buildOnce, dist } from '../support/bundles.ts';

/** The result of a command. */
export interface Ran {
  readonly status: number;
  readonly stdout: string;
  readonly stderr: string;
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
export function plumbline(args: readonly string[], options: RunOptions = {}): Promise<Ran> {
  const { kubeconfig, env = {}, input, program = PROGRAM } = options;
  const {
    KUBECONFIG: _,
    KUBERNETES_SERVICE_HOST: __,
    NO_COLOR: ___,
    FORCE_COLOR: ____,
    COLUMNS: _____,
    ...rest
  } = process.env;
  const own = { ...rest, HOME: '/nonexistent', ...(kubeconfig !== undefined && { KUBECONFIG: kubeconfig }), ...env };
  return new Promise((resolve) => {
    const child = execFile(
      process.execPath,
      [program, ...args],
      { env: own, maxBuffer: 64 * 1024 * 1024 },
      (error, stdout, stderr) => {
        resolve({ status: error === null ? 0 : typeof error.code === 'number' ? error.code : 1, stdout, stderr });
      },
    );
    child.stdin?.end(input ?? '');
  });
}
