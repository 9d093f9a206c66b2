import { networksOf, reachFindings } from '../../model/admission/networks.ts';
import { launcherCpus } from '../../model/launcher/cpus.ts';
import { type ClusterFactsOptions, gatherCluster } from '../cluster/cluster-facts.ts';
import type { ReadTemplate } from './read-template.ts';

export interface VmNetworksRequest {
  readonly namespace: string;
  readonly current: ReadTemplate;
  /** The template before an update. */
  readonly previous: ReadTemplate | undefined;
}

export interface VmNetworks {
  readonly warnings: readonly string[];
  /** Why the VM is refused; also among the warnings. */
  readonly refusal: string | undefined;
}

/**
 * Findings about a VM's networks before it has a launcher. With an instancetype it is unknown whether the VM has
 * exclusive CPUs, which all findings depend on: the VMI then gets the warning. An existing object only gets warnings,
 * because controllers write it as well and must not be blocked.
 * @throws ParseError if an annotation is malformed
 */
export async function reviewNetworks(
  { namespace, current, previous }: VmNetworksRequest,
  options: ClusterFactsOptions,
): Promise<VmNetworks> {
  if (current.instancetype) return { warnings: [], refusal: undefined };
  const { metadata, spec } = current;
  const exclusive = spec.domain.cpu?.dedicatedCpuPlacement === true;
  const owner = { namespace, vmi: { metadata, spec } };
  const cluster = await gatherCluster(owner, () => exclusive, spec, options);
  const { networks, held, findings } = networksOf({ ...owner, exclusive }, cluster.networks);
  const spansCells = spec.domain.cpu?.numa?.guestMappingPassthrough != null;
  const guest = { cpus: held.length > 0 ? launcherCpus({ metadata, spec }).total : 0, spansCells };
  const reach = reachFindings(held, guest, cluster, options.oversized);
  const refusal = previous === undefined ? reach.find(({ severity }) => severity === 'error') : undefined;
  const before = previous && new Set((previous.spec.networks ?? []).map(({ name }) => name));
  const plugged = networks.filter(
    ({ name, role, affinity, kind }) =>
      before?.has(name) === false &&
      role === 'secondary' &&
      affinity === 'required' &&
      (kind === 'physnet' || kind === 'tunnel'),
  );
  const warnings = [
    ...[...findings, ...reach].map(({ message }) => message),
    ...plugged.map(
      ({ name }) =>
        `interface ${name} is plugged into a VM that keeps its CPUs while it runs: its NUMA affinity applies from the next migration or restart`,
    ),
  ];
  return { warnings, refusal: refusal?.message };
}
