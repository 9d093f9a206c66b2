import { execFile } from 'node:child_process';
import { dirname, join } from 'node:path';
import { dist } from '../../support/bundles.ts';
import { copyCommand } from '../command-files.ts';
import type { Scene } from '../scenarios/scenario.ts';

const PROGRAM = '/opt/plumbline-lab/agent/plumbline.mjs';

/** The output of `plumbline` on this machine, with any exit status. */
export function plumblineHere({ lab }: Scene, ...args: readonly string[]): Promise<string> {
  const env = { ...process.env, KUBECONFIG: lab.kubeconfig(), NO_COLOR: '1', COLUMNS: '160' };
  return new Promise((resolve, reject) => {
    execFile(process.execPath, [join(dist, 'plumbline.mjs'), ...args], { env, timeout: 120_000 }, (error, out, err) => {
      if (error?.killed) reject(error);
      else resolve(`${out}${err}`);
    });
  });
}

/** Its output on the node, where it can reach the agent. */
export async function plumblineOnNode({ lab }: Scene, ...args: readonly string[]): Promise<string> {
  await lab.run(`test -e ${PROGRAM}`).catch(() => copyCommand(lab, dirname(PROGRAM)));
  return lab.run(`node ${PROGRAM} ${args.join(' ')} 2>&1 || true`);
}
