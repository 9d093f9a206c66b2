import { Command, InvalidArgumentError } from 'commander';
import { readCpus } from '../support/cpus.ts';
import { withOutput } from '../support/output.ts';
import type { NovaConfFlags } from './run.ts';

const EXAMPLES = `
Examples:
  plumbline import nova-conf /etc/nova/nova.conf /etc/nova/nova.conf.d > map.yaml
  kubectl apply -f map.yaml                 # then add the component network-map to the agent's kustomization
  plumbline import nova-conf rack-a.conf --node-selector rack=a --map-only >> networks.yaml
  plumbline import nova-conf nova.conf --cpus 0-63 -o json

Settings in later files override earlier ones; a directory means the *.conf files in it. Warnings go to standard error.
Exit status: 0 done, also with warnings; 2 if a file is not a Nova configuration.`;

export function createCommand(): Command {
  const novaConf = new Command('nova-conf')
    .description(
      'Convert nova.conf of a compute host ([neutron] physnets, [neutron_physnet_*], [neutron_tunnel]) to a network map, ' +
        'and print the CPUs that the kubelet must reserve so that VMs get those of cpu_dedicated_set.',
    )
    .argument('<files...>', 'nova.conf, and further files in the order of nova-compute')
    .option(
      '--node-selector <label=value>',
      'the nodes that the map is for; may be repeated; default: all',
      nodeSelector,
    )
    .option('--cpus <list>', 'the CPUs of such a host, such as 0-63, to compute the CPUs to reserve', readCpus)
    .option('--map-only', 'print only the entry, to add to an existing map, instead of a ConfigMap')
    .addHelpText('after', EXAMPLES)
    .action(async (paths: string[], flags: NovaConfFlags) => (await import('./run.ts')).run(paths, flags));
  return new Command('import')
    .description('Convert the host configuration of another system.')
    .addCommand(withOutput(novaConf, ['json', 'yaml']));
}

function nodeSelector(text: string, before: Readonly<Record<string, string>> = {}): Record<string, string> {
  const [, label, value] = /^([A-Za-z0-9][A-Za-z0-9._/-]*)=([A-Za-z0-9._-]*)$/.exec(text) ?? [];
  if (label === undefined || value === undefined)
    throw new InvalidArgumentError('expected label=value, such as rack=a');
  return { ...before, [label]: value };
}
