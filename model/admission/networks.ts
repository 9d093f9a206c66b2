import type { Finding } from '../errors.ts';
import type { OversizedPolicy } from '../launcher/annotation.ts';
import { NUMA_AFFINITY_ANNOTATION } from '../names.ts';
import { type NetworkRef, parseRef, refText } from '../networks/attachments.ts';
import { interfacesOf, type NetworkInterface, parseAffinities } from '../networks/interfaces.ts';
import { classifyNad, type NadFacts } from '../networks/nad.ts';
import { type Guest, reachFinding } from '../networks/reach.ts';
import { type Resolution, type ResolvedNetwork, resolveNetworks } from '../networks/resolve.ts';
import { EVERY_NETWORK, interfaceResources, preferredResources, requiredResources } from '../networks/resources.ts';
import { interfacesBy } from '../placement/preferences.ts';
import type { PodShape, VmiShape } from '../shapes.ts';
import type { ClusterFacts, NetworkFacts } from './facts.ts';

export interface NetworkOwner {
  readonly namespace: string;
  readonly pod?: PodShape | undefined;
  readonly vmi?: VmiShape | undefined;
  readonly exclusive: boolean;
}

export interface OwnerNetworks {
  readonly networks: readonly ResolvedNetwork[];
  /** Required networks with a device, and those without one. */
  readonly required: readonly ResolvedNetwork[];
  readonly withoutDevice: readonly ResolvedNetwork[];
  /** Their device resources to request, each once. */
  readonly resources: readonly string[];
  /** These, and the resources of required networks that no node reports at present. */
  readonly mayHave: readonly string[];
  /** Resources of preferred networks, for the extender's score. */
  readonly preferred: readonly string[];
  /** Interface names by such a resource, for the extender's messages. */
  readonly interfaces: Readonly<Record<string, string>>;
  readonly findings: readonly Finding[];
}

const interfacesOfOwner = ({ namespace, pod, vmi }: NetworkOwner, { primary }: NetworkFacts) =>
  interfacesOf({ namespace, pod, vmi, primary: primary.kind === 'primary' ? primary.ref : undefined });

/** Resolves networks to the device resources that keep a pod on their NUMA nodes. @throws ParseError */
export function podNetworks(owner: NetworkOwner, facts: NetworkFacts): OwnerNetworks {
  const { namespace, exclusive } = owner;
  const resolved = resolve(owner, facts, interfacesOfOwner(owner, facts), (ref) => facts.definitions.get(refText(ref)));
  const { networks } = resolved;
  const required = requiredResources(networks, facts.reported, exclusive);
  const findings: Finding[] = [...resolved.findings, ...required.findings];
  if (facts.primary.kind === 'missing' && networks.some(({ role }) => role === 'pod')) {
    const message = `namespace ${namespace} is labelled for a primary user-defined network and has none`;
    findings.push({ severity: 'warning', code: 'no-primary-network', message });
  }
  const preferred = networks.filter(({ affinity }) => affinity === 'preferred');
  return {
    networks,
    required: required.requiredNetworks,
    withoutDevice: required.withoutDevice,
    resources: required.resources,
    mayHave: requiredResources(networks, EVERY_NETWORK, exclusive).resources,
    preferred: exclusive ? preferredResources(networks) : [],
    interfaces: interfacesBy(exclusive ? interfaceResources([...required.requiredNetworks, ...preferred]) : []),
    findings,
  };
}

/** Missing from the cache, or of a physnet without a report: read them again before they count. @throws ParseError */
export function doubtfulNetworks(owner: NetworkOwner, facts: NetworkFacts, findNad: FindNad): NetworkRef[] {
  const nads = new Map<NetworkRef, NadFacts | undefined>();
  const interfaces = interfacesOfOwner(owner, facts);
  for (const { ref } of interfaces) if (ref !== undefined) nads.set(ref, ref.name === '' ? undefined : findNad(ref));
  if ([...nads.values()].every((nad) => leadsSomewhereKnown(nad, facts))) return [];
  const { networks, missing } = resolve(owner, facts, interfaces, (ref) => nads.get(ref));
  const notReported = networks.filter(
    (network) =>
      network.kind === 'physnet' && network.affinity === 'required' && !facts.reported.physnets.has(network.physnet),
  );
  const refs = [...missing, ...notReported.map(({ network }) => parseRef(network, ''))];
  return [...new Map(refs.map((ref) => [refText(ref), ref])).values()];
}

/** The common case. */
function leadsSomewhereKnown(nad: NadFacts | undefined, { reported, context }: NetworkFacts): boolean {
  const network = nad && classifyNad(nad, context);
  return network !== undefined && (network.kind !== 'physnet' || reported.physnets.has(network.physnet));
}

type FindNad = (ref: NetworkRef) => NadFacts | undefined;

function resolve(
  { pod, vmi, exclusive }: NetworkOwner,
  { context }: NetworkFacts,
  interfaces: readonly NetworkInterface[],
  findNad: FindNad,
): Resolution {
  return resolveNetworks({
    interfaces,
    preferences: parseAffinities((vmi ?? pod)?.metadata.annotations?.[NUMA_AFFINITY_ANNOTATION] ?? ''),
    findNad,
    context,
    exclusive,
  });
}

/** A guest that is too large is refused only if every node that it can run on has a report. */
export function reachFindings(
  networks: readonly ResolvedNetwork[],
  guest: Guest,
  { candidates, allReport }: Pick<ClusterFacts, 'candidates' | 'allReport'>,
  oversized: OversizedPolicy,
): readonly Finding[] {
  const finding = reachFinding(networks, guest, candidates);
  if (finding === undefined) return [];
  const { isTooLarge, message } = finding;
  const isRefused = isTooLarge && oversized === 'refuse' && allReport;
  return [
    { severity: isRefused ? 'error' : 'warning', code: isTooLarge ? 'larger-than-cells' : 'out-of-reach', message },
  ];
}
