import { cut, type Finding, few, quote } from '../errors.ts';
import { NUMA_AFFINITY_ANNOTATION } from '../names.ts';
import { type NetworkRef, refText } from './attachments.ts';
import type { NadRefusal } from './cni-config.ts';
import type { NetworkContext } from './context.ts';
import { type Affinity, type AffinityByInterface, type NetworkInterface, PREFERRED_EFFECT } from './interfaces.ts';
import { classifyNad, type NadFacts, type NetworkClass } from './nad.ts';

export type ResolvedNetwork = NetworkClass & {
  readonly name: string;
  readonly role: 'pod' | 'secondary';
  /** `namespace/name` of the definition, or POD_NETWORK. */
  readonly network: string;
  readonly affinity: Affinity;
  /** Whether the user set the affinity; otherwise it is the default. */
  readonly explicit?: boolean;
};

const MAX_NAMED_INTERFACES = 8;
const MAX_NAME_CHARACTERS = 100;

export const POD_NETWORK = 'pod';

export function networkWarning(code: string, message: string): Finding {
  return { severity: 'warning', code, message };
}

export interface ResolveRequest {
  readonly interfaces: readonly NetworkInterface[];
  readonly preferences: AffinityByInterface;
  readonly findNad: (ref: NetworkRef) => NadFacts | undefined;
  readonly context: NetworkContext;
  /** Whether the pod gets exclusive CPUs. Only then is a network required by default. */
  readonly exclusive: boolean;
}

export interface Resolution {
  readonly networks: readonly ResolvedNetwork[];
  /** Look each of them up in the API server, then resolve again, before they count as unknown. */
  readonly missing: readonly NetworkRef[];
  readonly findings: readonly Finding[];
}

/**
 * An entry of the annotation names an interface, or else a network and thereby all interfaces on it. Without one, a
 * secondary network on a physnet or the tunnel is required for a pod with exclusive CPUs, and nothing else is.
 */
export function resolveNetworks(request: ResolveRequest): Resolution {
  const { interfaces, preferences, exclusive } = request;
  const missing = new Map<string, NetworkRef>();
  const findings = unknownAffinities(preferences, interfaces);
  const networks = interfaces.map((attachment): ResolvedNetwork => {
    const facts = attachment.ref?.name ? request.findNad(attachment.ref) : undefined;
    const networkClass = classOf(attachment, facts, request);
    if (networkClass.kind === 'unknown' && networkClass.warning === 'not-found' && attachment.ref)
      missing.set(refText(attachment.ref), attachment.ref);
    const located = networkClass.kind === 'physnet' || networkClass.kind === 'tunnel';
    const preference = preferenceFor(attachment, preferences);
    const affinity = preference ?? (located && exclusive && attachment.role === 'secondary' ? 'required' : 'none');
    const network = attachment.ref === undefined ? POD_NETWORK : refText(attachment.ref);
    const base = { ...networkClass, name: attachment.name, role: attachment.role, network, affinity };
    const resolved = preference === undefined ? base : { ...base, explicit: true };
    const isRead = !('warning' in networkClass && networkClass.warning !== undefined);
    if (isRead && facts?.refusal === undefined && affinity === 'none') return resolved;
    const short = withShortNames(resolved);
    findings.push(...networkFindings(short, facts?.refusal), ...preferenceFindings(short, located, exclusive));
    return resolved;
  });
  return { networks, missing: [...missing.values()], findings };
}

function classOf({ ref }: NetworkInterface, facts: NadFacts | undefined, request: ResolveRequest): NetworkClass {
  if (ref === undefined) return { kind: 'tunnel' };
  return facts === undefined ? { kind: 'unknown', warning: 'not-found' } : classifyNad(facts, request.context);
}

function preferenceFor({ name, ref }: NetworkInterface, preferences: AffinityByInterface): Affinity | undefined {
  if (preferences.size === 0) return undefined;
  return preferences.get(name) ?? (ref && (preferences.get(refText(ref)) ?? preferences.get(ref.name)));
}

function unknownAffinities(preferences: AffinityByInterface, interfaces: readonly NetworkInterface[]): Finding[] {
  if (preferences.size === 0) return [];
  const keys = new Set(interfaces.flatMap(({ name, ref }) => (ref ? [name, refText(ref), ref.name] : [name])));
  const names = interfaces.map(({ name }) => name);
  const has = few(names, MAX_NAMED_INTERFACES, MAX_NAME_CHARACTERS).join(', ') || 'none';
  const unknown = [...preferences.keys()].filter((name) => !keys.has(name));
  const texts = unknown
    .slice(0, MAX_NAMED_INTERFACES)
    .map((name) => `${quote(name)}, which is no interface or network of this VM (it has: ${has})`);
  const more = unknown.length - texts.length;
  if (more > 0) texts.push(`${more} more that are no interface or network of this VM`);
  return texts.map((text) =>
    networkWarning('unknown-interface', `annotation ${NUMA_AFFINITY_ANNOTATION} names ${text}`),
  );
}

/** Tenants choose them. */
function withShortNames<One extends ResolvedNetwork>(network: One): One {
  const short = (text: string) => cut(text, MAX_NAME_CHARACTERS);
  return { ...network, name: short(network.name), network: short(network.network) };
}

function networkFindings(network: ResolvedNetwork, refusal: NadRefusal | undefined): Finding[] {
  if (refusal !== undefined) {
    const message = `interface ${network.name}: ${refusal.by} refuses ${network.network}, so the VM does not start: ${refusal.why}`;
    return [networkWarning('refused-network', message)];
  }
  if (network.kind === 'unknown') {
    const why = {
      'not-found': `there is no NetworkAttachmentDefinition ${network.network} that its namespace may use`,
      'no-subnet': `no Kube-OVN subnet belongs to ${network.network}`,
    }[network.warning];
    return [networkWarning('unknown-network', `interface ${network.name}: ${why}; no NUMA affinity`)];
  }
  if (network.kind !== 'none' || network.warning === undefined) return [];
  const message = `interface ${network.name}: the configuration of ${network.network} cannot be read (${network.warning}); no NUMA affinity`;
  return [networkWarning('unreadable-network', message)];
}

function preferenceFindings(network: ResolvedNetwork, located: boolean, exclusive: boolean): Finding[] {
  if (network.affinity === 'none') return [];
  if (network.affinity === 'preferred') {
    const message = `interface ${network.name}: ${PREFERRED_EFFECT}`;
    return located && exclusive ? [{ severity: 'information', code: 'preferred-is-score-only', message }] : [];
  }
  const noEffect = `interface ${network.name}: affinity "required" has no effect`;
  if (!located) {
    const message = `${noEffect}, because ${network.network} is on no physnet or tunnel that Plumbline knows`;
    return [networkWarning('affinity-without-location', message)];
  }
  if (exclusive) return [];
  const message = `${noEffect} on a VM without exclusive CPUs, which runs on the whole shared pool`;
  return [networkWarning('affinity-without-exclusive-cpus', message)];
}
