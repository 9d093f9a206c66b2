import { Command } from 'commander';
import { ParseError } from '../../model/errors.ts';
import { NAMESPACE } from '../../model/names.ts';
import { type NovaHost, readNovaConf } from '../../model/nova-conf/nova-conf.ts';
import { type ConfigFile, parseOsloConfig } from '../../model/nova-conf/oslo-config.ts';
import { usageError } from '../support/exit-status.ts';
import { type OutputFormat, print, withOutput } from '../support/output.ts';
import { readConfigFiles } from './config-files.ts';
import { importedLines, mapEntry } from './lines.ts';
import { cpuList, nodeSelector } from './options.ts';

interface NovaConfFlags {
  readonly nodeSelector?: Readonly<Record<string, string>>;
  readonly cpus?: string;
  readonly mapOnly?: true;
  readonly output?: OutputFormat;
}

const EXAMPLES = `
Examples:
  plumbline import nova-conf /etc/nova/nova.conf /etc/nova/nova.conf.d > map.yaml
  kubectl apply -f map.yaml                 # then add the component network-map to the agent's kustomization
  plumbline import nova-conf rack-a.conf --node-selector rack=a --map-only >> networks.yaml
  plumbline import nova-conf nova.conf --cpus 0-63 -o json

Settings in later files override earlier ones; a directory means the *.conf files in it. Warnings go to standard error.
Exit status: 0 done, also with warnings; 2 if a file is not a Nova configuration.`;

/** `plumbline import` */
export function importCommand(): Command {
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
    .option('--cpus <list>', 'the CPUs of such a host, such as 0-63, to compute the CPUs to reserve', cpuList)
    .option('--map-only', 'print only the entry, to add to an existing map, instead of a ConfigMap')
    .addHelpText('after', EXAMPLES)
    .action(async (paths: string[], flags: NovaConfFlags) => {
      const found = novaHostOf(await readConfigFiles(paths));
      for (const warning of found.warnings) process.stderr.write(`warning: ${warning}\n`);
      const { dedicated, shared } = found.cpus;
      const data = {
        networkMap: [mapEntry(found, flags.nodeSelector)],
        cpus: { dedicated: dedicated?.toString(), shared: shared?.toString() },
        warnings: found.warnings,
      };
      await print(flags.output, data, {
        text: () => importedLines(found, { ...flags, namespace: NAMESPACE }),
      });
    });
  return new Command('import')
    .description('Convert the host configuration of another system.')
    .addCommand(withOutput(novaConf, ['json', 'yaml']));
}

function novaHostOf(files: readonly ConfigFile[]): NovaHost {
  try {
    return readNovaConf(parseOsloConfig(files));
  } catch (error) {
    if (error instanceof ParseError) throw usageError(error.message, { cause: error });
    throw error;
  }
}
