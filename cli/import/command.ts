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

Of several files, later ones win; a directory stands for the *.conf in it. Warnings go to standard error.
Ends with 0 also where it warns, with 2 if a file cannot be read as one of Nova's.`;

/** `plumbline import` */
export function importCommand(): Command {
  const novaConf = new Command('nova-conf')
    .description(
      'Makes the network map of a compute host’s nova.conf ([neutron] physnets, [neutron_physnet_*], [neutron_tunnel]), ' +
        'and says which CPUs the kubelet has to reserve so that VMs get those of cpu_dedicated_set.',
    )
    .argument('<files...>', 'nova.conf, and further files as they are given to nova-compute')
    .option(
      '--node-selector <label=value>',
      'the nodes that the map is for; may be given again; default: all',
      nodeSelector,
    )
    .option('--cpus <list>', 'the CPUs of such a host, as 0-63: for the CPUs to reserve', cpuList)
    .option('--map-only', 'print the entry alone, to be put under others, instead of a ConfigMap')
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
    .description('Takes over what another system was told of its hosts.')
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
