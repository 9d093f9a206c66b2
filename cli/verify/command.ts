import { Command } from 'commander';
import { type ClusterFlags, usingCluster, withCluster } from '../support/cluster.ts';
import { EXIT } from '../support/exit-status.ts';
import { type OutputFormat, print, withOutput } from '../support/output.ts';
import { terminalOf } from '../support/terminal.ts';
import { readVerifyFacts } from './facts.ts';
import { verificationLines } from './lines.ts';
import { verifyMasks } from './survey.ts';

interface VerifyFlags extends ClusterFlags {
  readonly output?: OutputFormat;
}

const NOTES = `
A node can host a VM if every CPU in the mask is online there, and each vCPU has at least one CPU that is neither
reserved nor owned by a container at the moment. Only nodes that match the VM's node selector and affinity count.

Examples:
  plumbline verify                # every VM with a mask, in all namespaces
  plumbline verify -n tenants -o wide
  plumbline verify -o json | jq '.vms[] | select(.nodes == [])'

Exit status: 0 done, 1 if a VM has no node at all, 3 if the cluster cannot be queried.`;

/** `plumbline verify` */
export function verifyCommand(): Command {
  const command = new Command('verify')
    .description('Check the CPU mask of every VM against every node: which nodes can host it, and why others cannot.')
    .option('-n, --namespace <name>', 'VMs of one namespace; default: all')
    .addHelpText('after', NOTES)
    .action((flags: VerifyFlags) =>
      usingCluster(flags, async ({ client }) => {
        const found = verifyMasks(await readVerifyFacts(client, flags.namespace, Date.now()));
        const terminal = terminalOf(process.stdout);
        await print(flags.output, found, {
          text: () => verificationLines(found, terminal),
          wide: () => verificationLines(found, { ...terminal, width: Number.POSITIVE_INFINITY }, true),
          name: () =>
            found.vms.flatMap(({ kind, name, nodes }) => (nodes.length === 0 ? [`${kind.toLowerCase()}/${name}`] : [])),
        });
        process.exitCode = found.withoutNode === 0 ? EXIT.ok : EXIT.findings;
      }),
    );
  return withOutput(withCluster(command), ['json', 'yaml', 'wide', 'name']);
}
