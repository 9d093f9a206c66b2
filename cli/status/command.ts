import { intervalSeconds, Subcommand } from '../support/command.ts';
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

export const createCommand = () =>
  new Subcommand(
    'status',
    'Show the VMs that do not run, or run but not as requested, and why; agents that are silent, DPUs that are dead, and kubelets that did not do as predicted.',
    EXAMPLES,
  )
    .option('-A, --all-namespaces', 'VMs of all namespaces')
    .option(
      '-w, --watch [seconds]',
      `refresh until interrupted; default: every ${REFRESH_SECONDS} seconds`,
      intervalSeconds,
    )
    .withCluster()
    .withNamespace()
    .withOutput('json', 'yaml', 'wide', 'name')
    .action(async (flags: StatusFlags) => (await import('./run.ts')).run(flags, REFRESH_SECONDS));
