import { apartFinding } from '../../model/networks/common-cell.ts';
import type { DecideOptions } from '../pods/launcher.ts';
import { ownerNetworks } from '../pods/networks.ts';
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
 * @throws ParseError if an annotation is malformed
 */
export async function networkWarnings(
  { namespace, current, previous }: VmNetworksRequest,
  { view, fetchNad }: DecideOptions,
): Promise<readonly string[]> {
  if (current.instancetype) return [];
  const exclusive = current.spec.domain.cpu?.dedicatedCpuPlacement === true;
  const { metadata, spec } = current;
  const { networks, held, warnings } = await ownerNetworks(
    { namespace, vmi: { metadata, spec }, exclusive },
    view,
    fetchNad,
  );
  const nodes = view.candidates(spec).map((kind) => kind.networks);
  const apart = exclusive ? apartFinding(held, nodes) : undefined;
  const before = previous && new Set((previous.spec.networks ?? []).map(({ name }) => name));
  const plugged = networks.filter(
    ({ name, role, affinity, kind }) =>
      before?.has(name) === false &&
      role === 'secondary' &&
      affinity === 'required' &&
      (kind === 'physnet' || kind === 'tunnel'),
  );
  return [
    ...warnings,
    ...(apart === undefined ? [] : [apart]),
    ...plugged.map(
      ({ name }) =>
        `interface ${name} is plugged into a VM that keeps its CPUs while it runs: its NUMA affinity counts from the next migration or restart`,
    ),
  ];
}
