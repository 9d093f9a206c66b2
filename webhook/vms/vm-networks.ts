import { launcherCpus } from '../../model/launcher/cpus.ts';
import type { DecideOptions } from '../pods/launcher.ts';
import { ownerNetworks } from '../pods/networks.ts';
import { type Reach, reachOf } from '../pods/oversized.ts';
import type { ReadTemplate } from './read-template.ts';

export interface VmNetworksRequest {
  readonly namespace: string;
  readonly current: ReadTemplate;
  /** Before an update. */
  readonly previous: ReadTemplate | undefined;
}

/**
 * What is to be said about a VM's networks before it has a launcher. With an instancetype it is not known whether it
 * has exclusive CPUs, on which everything depends: then the VMI is warned about.
 * An object that is there already is warned about only: controllers write it as well, and must not be stopped.
 * @throws ParseError if an annotation is malformed
 */
export async function reviewNetworks(
  { namespace, current, previous }: VmNetworksRequest,
  options: DecideOptions,
): Promise<Reach> {
  if (current.instancetype) return { warnings: [], refusal: undefined };
  const { view, fetchNad } = options;
  const exclusive = current.spec.domain.cpu?.dedicatedCpuPlacement === true;
  const { metadata, spec } = current;
  const { networks, held, warnings } = await ownerNetworks(
    { namespace, vmi: { metadata, spec }, exclusive },
    view,
    fetchNad,
  );
  const spansCells = spec.domain.cpu?.numa?.guestMappingPassthrough != null;
  const guest = { cpus: held.length > 0 ? launcherCpus({ metadata, spec }).total : 0, spansCells };
  const reach = reachOf(held, guest, spec, options);
  const asWarnings = previous !== undefined && reach.refusal !== undefined ? [reach.refusal] : reach.warnings;
  const before = previous && new Set((previous.spec.networks ?? []).map(({ name }) => name));
  const plugged = networks.filter(
    ({ name, role, affinity, kind }) =>
      before?.has(name) === false &&
      role === 'secondary' &&
      affinity === 'required' &&
      (kind === 'physnet' || kind === 'tunnel'),
  );
  const all = [
    ...warnings,
    ...asWarnings,
    ...plugged.map(
      ({ name }) =>
        `interface ${name} is plugged into a VM that keeps its CPUs while it runs: its NUMA affinity counts from the next migration or restart`,
    ),
  ];
  return { warnings: all, refusal: previous === undefined ? reach.refusal : undefined };
}
