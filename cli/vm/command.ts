import { Command } from 'commander';
import { type AgentFlags, withAgent } from '../agent/flags.ts';

const EXAMPLES = `
Examples:
  plumbline vm status worker-1       # through the API server
  plumbline vm status                # on the node itself
  plumbline vm status -o wide        # a line for each thread

Exit status: 0 if every thread is on its CPUs and no VMs share CPUs, 1 if not, 3 if the agent cannot be
reached, 4 if no agent runs on the node.`;

export function createCommand(): Command {
  const status = new Command('status')
    .description(
      'Show the threads of the VMs on a node that have a CPU mask or dedicated CPUs: vCPUs, IO threads and the ' +
        'emulator’s, the CPUs each should run on and those it may run on. The node’s agent answers: directly on the ' +
        'node itself, else through a port-forward.',
    )
    .addHelpText('after', EXAMPLES)
    .action(async (node: string | undefined, flags: AgentFlags) => (await import('./run.ts')).run(node, flags));
  return new Command('vm').description('Show the VMs on a node.').addCommand(withAgent(status));
}
