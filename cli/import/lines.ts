import { stringify } from 'yaml';
import { CpuSet } from '../../model/cpu-set.ts';
import type { NetworkMapEntry } from '../../model/networks/network-map.ts';
import { type NovaHost, reservedCpusFor } from '../../model/nova-conf/nova-conf.ts';

export interface ImportChoice {
  readonly nodeSelector?: Readonly<Record<string, string>>;
  /** The host's CPUs. */
  readonly cpus?: string;
  readonly mapOnly?: true;
  readonly namespace: string;
}

/** The map's entry for hosts with this configuration. */
export function mapEntry({ networks }: NovaHost, nodeSelector: ImportChoice['nodeSelector']): NetworkMapEntry {
  return { ...(nodeSelector && { nodeSelector }), ...networks };
}

/** The ConfigMap that the component network-map mounts, or its entry alone; what else is to be done as comments. */
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
  return stringify(data, { lineWidth: 0, collectionStyle: 'any' }).trimEnd().split('\n');
}

/** What the kubelet of such a host is to be told, as comments. */
function cpuAdvice({ cpus }: NovaHost, online: string | undefined): string[] {
  const { dedicated, shared } = cpus;
  if (dedicated === undefined) return [];
  const all = online === undefined ? undefined : CpuSet.parse(online);
  const reserved = all && reservedCpusFor(cpus, all);
  const reserve =
    reserved === undefined
      ? [`# all of the host's CPUs but ${dedicated} (give --cpus for the list)`]
      : [`reservedSystemCPUs: "${reserved}"`].map((line) => `# ${line}`);
  const foreign = all && dedicated.minus(all);
  return [
    `# Pinned guests had CPUs ${dedicated} here. For VMs to get the same, the kubelet's configuration reserves the others:`,
    ...reserve,
    '# cpuManagerPolicy: static',
    ...(shared ? [`# The other guests' CPUs ${shared} have no counterpart: their pods share what nobody owns.`] : []),
    ...(foreign && !foreign.isEmpty ? [`# CPUs ${foreign} are not among those of --cpus.`] : []),
  ];
}
