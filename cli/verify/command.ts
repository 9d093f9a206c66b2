import { Subcommand } from '../support/command.ts';

const NOTES = `
A node can host a VM if every CPU in the mask is online there, and each vCPU has at least one CPU that is neither
reserved nor owned by a container at the moment. Only nodes that match the VM's node selector and affinity count.

Examples:
  plumbline verify                # every VM with a mask, in all namespaces
  plumbline verify -n tenants -o wide
  plumbline verify -o json | jq '.vms[] | select(.nodes == [])'

Exit status: 0 done, 1 if a VM has no node, or its mask is refused or it stays paused where it is, 3 if the cluster cannot be queried.`;

export const createCommand = () =>
  new Subcommand(
    'verify',
    'Check the CPU mask of every VM against every node: which nodes can host it, and why others cannot.',
    NOTES,
  )
    .option('-n, --namespace <name>', 'VMs of one namespace; default: all')
    .option('-A, --all-namespaces', 'VMs of all namespaces, also if -n names one')
    .withCluster()
    .withOutput('json', 'yaml', 'wide', 'name')
    .runs(() => import('./run.ts'));
