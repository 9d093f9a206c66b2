import type { Pod, VirtualMachineInstance } from '../../kube/resources.ts';
import { NUMA_AFFINITY_ANNOTATION } from '../../model/names.ts';
import { parseAffinityWishes } from '../../model/networks/affinity.ts';
import { type NetworkRef, parseRef, refText } from '../../model/networks/attachments.ts';
import { interfacesOf } from '../../model/networks/interfaces.ts';
import type { NadFacts } from '../../model/networks/nad.ts';
import { type Resolution, type ResolvedNetwork, resolveNetworks } from '../../model/networks/resolve.ts';
import {
  EVERY_NETWORK,
  interfaceResources,
  preferredResources,
  requiredResources,
} from '../../model/networks/resources.ts';
import { interfacesBy } from '../../model/placement/wishes.ts';
import type { ClusterView } from '../cluster/cluster-view.ts';
import type { FetchNad } from './nad-fetch.ts';

/** Whose networks are to be resolved: those of a launcher, an ordinary pod, or a VM that has no pod yet. */
export interface NetworkOwner {
  readonly namespace: string;
  readonly pod?: Pod | undefined;
  readonly vmi?: Pick<VirtualMachineInstance, 'metadata' | 'spec'> | undefined;
  /** Whether it gets exclusive CPUs. */
  readonly exclusive: boolean;
}

export interface OwnerNetworks {
  readonly networks: readonly ResolvedNetwork[];
  /** Those that it is held to: required, and reported by some node. */
  readonly held: readonly ResolvedNetwork[];
  /** Their device resources to request, each once. */
  readonly resources: readonly string[];
  /** Those, and the ones of required networks that no node reports at the moment: whoever has them may keep them. */
  readonly mayHave: readonly string[];
  /** Resources of the networks that it would rather be near, for the extender to score by. */
  readonly preferred: readonly string[];
  /** The names of the interfaces by such a resource, for the extender's messages. */
  readonly interfaces: Readonly<Record<string, string>>;
  readonly warnings: readonly string[];
}

/**
 * Resolves networks to the device resources that hold a pod to their NUMA nodes. A definition that the watch has not
 * brought, or that leads to a physnet which no node reports, may have been written a moment ago: it is asked for once,
 * all such at a time, before it counts as unknown.
 * @throws ParseError if an annotation is malformed
 */
export async function ownerNetworks(
  owner: NetworkOwner,
  view: ClusterView,
  fetchNad: FetchNad,
): Promise<OwnerNetworks> {
  const { namespace, pod, vmi, exclusive } = owner;
  const primary = view.primaryNetwork(namespace);
  const wish = (vmi ?? pod)?.metadata.annotations?.[NUMA_AFFINITY_ANNOTATION] ?? '';
  const reported = view.reportedNetworks();
  const request = {
    interfaces: interfacesOf({ namespace, pod, vmi, primary: primary.kind === 'primary' ? primary.ref : undefined }),
    wishes: parseAffinityWishes(wish),
    context: view.networkContext(),
    exclusive,
  };
  let resolution = resolveNetworks({ ...request, findNad: view.findNad });
  const doubtful = doubtfulRefs(resolution, (physnet) => reported.physnets.has(physnet));
  if (doubtful.length > 0) {
    const fetched = new Map<string, NadFacts>();
    await Promise.all(
      doubtful.map(async (ref) => {
        const facts = await fetchNad(ref);
        if (facts !== undefined) fetched.set(refText(ref), facts);
      }),
    );
    const findNad = (ref: NetworkRef) => fetched.get(refText(ref)) ?? view.findNad(ref);
    resolution = resolveNetworks({ ...request, findNad });
  }
  const required = requiredResources(resolution.networks, reported, exclusive);
  const warnings = [...resolution.findings, ...required.findings].map(({ message }) => message);
  if (primary.kind === 'missing' && resolution.networks.some(({ role }) => role === 'pod')) {
    warnings.push(`namespace ${namespace} is labelled for a primary user-defined network and has none`);
  }
  return {
    networks: resolution.networks,
    held: required.held,
    resources: required.resources,
    mayHave: requiredResources(resolution.networks, EVERY_NETWORK, exclusive).resources,
    preferred: exclusive ? preferredResources(resolution.networks) : [],
    interfaces: interfacesBy(exclusive ? interfaceResources([...required.held, ...preferredOf(resolution)]) : []),
    warnings,
  };
}

const preferredOf = ({ networks }: Resolution) => networks.filter(({ affinity }) => affinity === 'preferred');

function doubtfulRefs({ networks, missing }: Resolution, isReported: (physnet: string) => boolean): NetworkRef[] {
  const unknown = networks.filter(
    (one) => one.kind === 'physnet' && one.affinity === 'required' && !isReported(one.physnet),
  );
  const refs = [...missing, ...unknown.map(({ network }) => parseRef(network, ''))];
  return [...new Map(refs.map((ref) => [refText(ref), ref])).values()];
}
