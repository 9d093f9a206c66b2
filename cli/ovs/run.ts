import { type AgentFlags, usingAgent } from '../agent/flags.ts';
import { fetchOvsStatus, isInOrder } from '../agent/ovs-status.ts';
import { EXIT } from '../support/exit-status.ts';
import { type OutputFormat, print } from '../support/output.ts';
import { statusLines } from './lines.ts';
import { ovsStatusData } from './output.ts';

export interface StatusFlags extends AgentFlags {
  readonly output?: OutputFormat;
}

/** Prints the threads of Open vSwitch on a node; without a name, on this machine. @throws CliError, KubeError */
export async function run(node: string | undefined, { output, ...flags }: StatusFlags): Promise<void> {
  const found = await usingAgent(node, flags, fetchOvsStatus);
  await print(output, ovsStatusData(found), {
    text: () => statusLines(found).slice(0, -1),
    wide: () => statusLines(found, true).slice(0, -1),
  });
  process.exitCode = isInOrder(found) ? EXIT.ok : EXIT.findings;
}
