import { withAgent } from '../agent/flags.ts';
import { Subcommand } from '../support/command.ts';

const EXAMPLES = `
Examples:
  plumbline interference worker-1          # through the API server
  plumbline interference                   # on the node itself
  plumbline interference worker-1 --plan   # what could be moved, what not, and which boot option would help
  plumbline interference worker-1 -o wide  # since the start of each VM, and all sources

Exit status: 0 if less than 1 % was taken from every VM in the last minute, 1 if more, 3 if the agent cannot
be reached, 4 if no agent runs on the node.`;

const DESCRIPTION =
  'Show what was taken from each VM with dedicated CPUs on a node: by interrupts and softirqs, and while its vCPU ' +
  'threads waited for a CPU, with the most frequent interrupts. The node’s agent answers: directly on the node ' +
  'itself, else through a port-forward.';

export const createCommand = () => {
  const plan = 'also what is or would be moved with --interrupts move, and what cannot be';
  return withAgent(new Subcommand('interference', DESCRIPTION, EXAMPLES).option('--plan', plan)).runs(
    () => import('./run.ts'),
  );
};
