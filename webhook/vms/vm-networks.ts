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

/** The findings that do not depend on the VM's CPUs. */
const DEFINITION_FINDINGS: ReadonlySet<string> = new Set(['refused-network', 'unreadable-network', 'unknown-network']);

/**
 * Findings about a VM's networks before it has a launcher. With an instancetype it is unknown whether the VM has
 * exclusive CPUs, which most findings depend on: the VMI then gets these. An existing object only gets warnings,
 * because controllers write it as well and must not be blocked.
 * @throws ParseError if an annotation is malformed
 */
export async function reviewNetworks(
  { namespace, current, previous }: VmNetworksRequest,
  options: ClusterFactsOptions,
): Promise<VmNetworks> {
  const { metadata, spec } = current;
  const exclusive = !current.instancetype && spec.domain.cpu?.dedicatedCpuPlacement === true;
  const owner = { namespace, vmi: { metadata, spec } };
  const cluster = await gatherCluster(owner, () => exclusive, spec, options);
  const { networks, held, findings } = networksOf({ ...owner, exclusive }, cluster.networks);
  if (current.instancetype) {
    const warnings = findings.filter(({ code }) => DEFINITION_FINDINGS.has(code)).map(({ message }) => message);
    return { warnings, refusal: undefined };
  }
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
