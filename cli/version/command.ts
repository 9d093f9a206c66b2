import { Subcommand } from '../support/command.ts';

const EXAMPLES = `
Examples:
  plumbline version             # of this command, and of the parts that the cluster runs
  plumbline version --client    # of this command only
  plumbline version -o json

Exit status: 0; 3 if there is a kubeconfig and its cluster cannot be queried.`;

export const createCommand = () =>
  new Subcommand(
    'version',
    'Print the versions of this command, its Node.js, and Plumbline, KubeVirt and Kubernetes on the cluster.',
    EXAMPLES,
  )
    .option('--client', 'do not query the cluster')
    .withCluster()
    .withOutput('json', 'yaml')
    .runs(() => import('./run.ts'));
