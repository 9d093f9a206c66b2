import type { CpuSet } from '../../model/cpu-set.ts';
import type { NetworkMapEntry } from '../../model/networks/network-map.ts';
import { type NovaHost, reservedCpusFor } from '../../model/nova-conf/nova-conf.ts';
import { yamlText } from '../support/yaml.ts';

export interface ImportChoice {
  readonly nodeSelector?: Readonly<Record<string, string>>;
  /** The host's CPUs. */
  readonly cpus?: CpuSet;
  readonly mapOnly?: true;
  readonly namespace: string;
}

/** The map's entry for hosts with this configuration. */
export function mapEntry({ networks }: NovaHost, nodeSelector: ImportChoice['nodeSelector']): NetworkMapEntry {
  return { ...(nodeSelector && { nodeSelector }), ...networks };
}

/** The ConfigMap for the component network-map, or only its entry; further steps as comments. */
export function importedLines(host: NovaHost, choice: ImportChoice): string[] {
  const entries = yamlLines([mapEntry(host, choice.nodeSelector)]);
  if (choice.mapOnly === true) return entries;
  return [
    ...cpuAdvice(host, choice.cpus),
    'apiVersion: v1',
    'kind: ConfigMap',
    'metadata:',
    '  name: plumbline-network-map',
    `  namespace: ${choice.namespace}`,
    'data:',
    '  networks.yaml: |',
    ...entries.map((line) => `    ${line}`),
  ];
}

function yamlLines(data: unknown): string[] {
  return yamlText(data, { collectionStyle: 'any' }).trimEnd().split('\n');
}

/** The kubelet settings for such a host, as comments. */
function cpuAdvice({ cpus }: NovaHost, online: CpuSet | undefined): string[] {
  const { dedicated, shared } = cpus;
  if (dedicated === undefined) return [];
  const reserved = online && reservedCpusFor(cpus, online);
  const reserve =
    reserved === undefined
      ? [`# all CPUs of the host except ${dedicated} (give --cpus for the list)`]
      : [`reservedSystemCPUs: "${reserved}"`].map((line) => `# ${line}`);
  const foreign = online && dedicated.minus(online);
  return [
    `# Nova gave pinned guests CPUs ${dedicated}. To give VMs the same, reserve the others in the kubelet's configuration:`,
    ...reserve,
    '# cpuManagerPolicy: static',
    ...(shared
      ? [`# CPUs ${shared} of the other guests have no counterpart: their pods share the CPUs without an owner.`]
      : []),
    ...(foreign && !foreign.isEmpty ? [`# CPUs ${foreign} are not in --cpus.`] : []),
  ];
}
