import { Command } from 'commander';
import { withCluster, withNamespace } from '../support/cluster.ts';
import { seconds, withOutput } from '../support/output.ts';
import type { StatusFlags } from './run.ts';

const REFRESH_SECONDS = 5;

const EXAMPLES = `
Examples:
  plumbline status                 # the VMs of this namespace that wait, and what is wrong with nodes
  plumbline status -A              # of all namespaces
  plumbline status -A -w           # refresh every ${REFRESH_SECONDS} seconds; Ctrl-C ends it
  plumbline status -A -o json
  plumbline status -A -o name      # the VMs, to pass to plumbline explain

Exit status: 0 nothing waits and nothing is wrong, 1 something is listed, 3 the cluster cannot be queried.`;

export function createCommand(): Command {
  const command = new Command('status')
    .description(
      'Show the VMs that do not run, or run but not as requested, and why; agents that are silent, DPUs that are dead, and kubelets that did not do as predicted.',
    )
    .option('-A, --all-namespaces', 'VMs of all namespaces')
    .option('-w, --watch [seconds]', `refresh until interrupted; default: every ${REFRESH_SECONDS} seconds`, seconds)
    .addHelpText('after', EXAMPLES)
    .action(async (flags: StatusFlags) => (await import('./run.ts')).run(flags, REFRESH_SECONDS));
  return withOutput(withNamespace(withCluster(command)), ['json', 'yaml', 'wide', 'name']);
}
