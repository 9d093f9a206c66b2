import { type AgentFlags, usingAgent } from '../agent/flags.ts';
import { EXIT } from '../support/exit-status.ts';
import { type OutputFormat, print } from '../support/output.ts';
import { statusLines } from './lines.ts';
import { vmStatusData } from './output.ts';
import { fetchVmStatus, isInOrder } from './status.ts';

export interface StatusFlags extends AgentFlags {
  readonly output?: OutputFormat;
}

/** Prints the threads of the VMs on a node; without a name, on this machine. @throws CliError, KubeError */
export async function run(node: string | undefined, { output, ...flags }: StatusFlags): Promise<void> {
  const found = await usingAgent(node, flags, fetchVmStatus);
  await print(output, vmStatusData(found), {
    text: () => statusLines(found),
    wide: () => statusLines(found, true),
  });
  process.exitCode = isInOrder(found) ? EXIT.ok : EXIT.findings;
}
