import { withAgent } from '../agent/flags.ts';
import { Subcommand } from '../support/command.ts';

const EXAMPLES = `
Examples:
  plumbline ovs status worker-1       # through the API server
  plumbline ovs status                # on the node itself
  plumbline ovs status -o wide        # a line for each thread

Exit status: 0 if every thread is on its CPUs, 1 if not, 3 if the agent cannot be reached, 4 if
no agent runs on the node.`;

const DESCRIPTION =
  'Show every thread of Open vSwitch: the CPUs it may run on, the CPUs it should run on, and why. The node’s ' +
  'agent answers: directly on the node itself, else through a port-forward.';

export const createCommand = () =>
  new Subcommand('ovs', 'Show where the threads of Open vSwitch run on a node.').addCommand(
    withAgent(new Subcommand('status', DESCRIPTION, EXAMPLES)).runs(() => import('./run.ts')),
  );
