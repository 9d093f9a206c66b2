import { Command } from 'commander';
import { withCluster } from '../support/cluster.ts';
import { withOutput } from '../support/output.ts';
import type { VersionFlags } from './run.ts';

const EXAMPLES = `
Examples:
  plumbline version             # of this command, and of the parts that the cluster runs
  plumbline version --client    # of this command only
  plumbline version -o json

Exit status: 0; 3 if there is a kubeconfig and its cluster cannot be queried.`;

export function createCommand(): Command {
  const command = new Command('version')
    .description(
      'Print the versions of this command, its Node.js, and Plumbline, KubeVirt and Kubernetes on the cluster.',
    )
    .option('--client', 'do not query the cluster')
    .addHelpText('after', EXAMPLES)
    .action(async (flags: VersionFlags) => (await import('./run.ts')).run(flags));
  return withOutput(withCluster(command), ['json', 'yaml']);
}
