import { dirname } from 'node:path';
import { copyCommand } from '../command-files.ts';
import type { Scene } from '../scenarios/scenario.ts';

const PROGRAM = '/opt/plumbline-lab/agent/plumbline.mjs';

/** The output of `plumbline` on the node, where it can reach the agent. */
export async function plumblineOnNode({ lab }: Scene, ...args: readonly string[]): Promise<string> {
  await lab.run(`test -e ${PROGRAM}`).catch(() => copyCommand(lab, dirname(PROGRAM)));
  return lab.run(`node ${PROGRAM} ${args.join(' ')} 2>&1 || true`);
}
