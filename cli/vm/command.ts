import { withAgent } from '../agent/flags.ts';
import { Subcommand } from '../support/command.ts';

const EXAMPLES = `
Examples:
  plumbline vm status worker-1       # through the API server
  plumbline vm status                # on the node itself
  plumbline vm status -o wide        # a line for each thread

Exit status: 0 if every thread is on its CPUs and no VMs share CPUs, 1 if not, 3 if the agent cannot be
reached, 4 if no agent runs on the node.`;

const DESCRIPTION =
  'Show the threads of the VMs on a node that have a CPU mask or dedicated CPUs: vCPUs, IO threads and the ' +
  'emulator’s, the CPUs each should run on and those it may run on. The node’s agent answers: directly on the ' +
  'node itself, else through a port-forward.';

export const createCommand = () =>
  new Subcommand('vm', 'Show the VMs on a node.').addCommand(
    withAgent(new Subcommand('status', DESCRIPTION, EXAMPLES)).runs(() => import('./run.ts')),
  );
