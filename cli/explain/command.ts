import { Subcommand } from '../support/command.ts';

const EXAMPLES = `
Examples:
  plumbline explain vm firewall             # why does this VM not start, and what would help?
  plumbline explain vm/firewall -n tenants
  plumbline explain tenants/firewall        # a VM of that name, else a pod
  plumbline explain pod virt-launcher-firewall-x7k2p -n tenants
  plumbline explain vm firewall -o wide     # every node by name
  plumbline explain vm firewall -o json     # for scripts

Exit status: 0 for any answer, 3 if the cluster cannot be queried, 4 if there is no such VM or pod.`;

export const createCommand = () =>
  new Subcommand(
    'explain',
    'Show why a VM or pod does not run, node by node, and what would help; or where it runs, and how well it is aligned.',
    EXAMPLES,
  )
    .argument('<kind>', 'vm, vmi or pod, followed by the name; or KIND/NAME, or NAMESPACE/NAME')
    .argument('[name]', 'NAME or NAMESPACE/NAME')
    .option(
      '--extender <url>',
      'ask the extender at this address, such as a port-forward; default: through the API server',
    )
    .withCluster()
    .withNamespace()
    .withOutput('json', 'yaml', 'wide', 'name')
    .runs(() => import('./run.ts'));
