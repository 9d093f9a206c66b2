import { Command } from 'commander';
import { fetchOvsStatus } from '../agent/fetch-ovs.ts';
import { type AgentFlags, usingAgent, withAgent } from '../agent/flags.ts';
import { isInOrder } from '../agent/ovs-status.ts';
import { EXIT } from '../support/exit-status.ts';
import { type OutputFormat, print, withOutput } from '../support/output.ts';
import { statusLines } from './lines.ts';
import { ovsStatusData } from './output.ts';

interface StatusFlags extends AgentFlags {
  readonly threads?: true;
  readonly json?: true;
  readonly output?: OutputFormat;
}

const EXAMPLES = `
Examples:
  plumbline ovs status worker-1       # through the API server
  plumbline ovs status                # on the node itself
  plumbline ovs status -o wide        # a line for each thread

Exit status: 0 if every thread is on its CPUs, 1 if not, 3 if the agent cannot be reached, 4 if
no agent runs on the node.`;

/** `plumbline ovs status` */
export function ovsCommand(): Command {
  const status = new Command('status')
    .description(
      'Show every thread of Open vSwitch: the CPUs it may run on, the CPUs it should run on, and why. The node’s ' +
        'agent answers: directly on the node itself, else through a port-forward.',
    )
    .option('--threads', 'the same as -o wide')
    .option('--json', 'the same as -o json')
    .addHelpText('after', EXAMPLES)
    .action(async (node: string | undefined, { threads, json, output, ...flags }: StatusFlags) => {
      const found = await usingAgent(node, flags, fetchOvsStatus);
      await print(json ? 'json' : (output ?? (threads ? 'wide' : 'text')), ovsStatusData(found), {
        text: () => statusLines(found).slice(0, -1),
        wide: () => statusLines(found, true).slice(0, -1),
      });
      process.exitCode = isInOrder(found) ? EXIT.ok : EXIT.findings;
    });
  withOutput(withAgent(status), ['json', 'yaml', 'wide']);
  return new Command('ovs').description('Show where the threads of Open vSwitch run on a node.').addCommand(status);
}
