import { Command } from 'commander';
import { type AgentFlags, usingAgent, withAgent } from '../agent/flags.ts';
import { EXIT } from '../support/exit-status.ts';
import { type OutputFormat, print, withOutput } from '../support/output.ts';
import { statusLines } from './lines.ts';
import { vmStatusData } from './output.ts';
import { fetchVmStatus, isInOrder } from './status.ts';

const EXAMPLES = `
Examples:
  plumbline vm status worker-1       # through the API server
  plumbline vm status                # on the node itself
  plumbline vm status -o wide        # a line for each thread

Exit status: 0 if every thread is on its CPUs and no VMs share CPUs, 1 if not, 3 if the agent cannot be
reached, 4 if no agent runs on the node.`;

interface StatusFlags extends AgentFlags {
  readonly output?: OutputFormat;
}

/** `plumbline vm status` */
export function vmCommand(): Command {
  const status = new Command('status')
    .description(
      'Show the threads of the VMs on a node that have a CPU mask or dedicated CPUs: vCPUs, IO threads and the ' +
        'emulator’s, the CPUs each should run on and those it may run on. The node’s agent answers: directly on the ' +
        'node itself, else through a port-forward.',
    )
    .addHelpText('after', EXAMPLES)
    .action(async (node: string | undefined, { output, ...flags }: StatusFlags) => {
      const found = await usingAgent(node, flags, fetchVmStatus);
      await print(output, vmStatusData(found), {
        text: () => statusLines(found),
        wide: () => statusLines(found, true),
      });
      process.exitCode = isInOrder(found) ? EXIT.ok : EXIT.findings;
    });
  withOutput(withAgent(status), ['json', 'yaml', 'wide']);
  return new Command('vm').description('Show the VMs on a node.').addCommand(status);
}
