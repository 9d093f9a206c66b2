import { ParseError, quote } from '../errors.ts';
import { isObject } from '../json.ts';
import { groupBy } from '../lists.ts';
import { NUMA_AFFINITY_ANNOTATION } from '../names.ts';
import type { MetaShape, PodShape, VmiShape } from '../shapes.ts';
import {
  type Attachment,
  DEFAULT_NETWORK_ANNOTATION,
  MAX_ATTACHMENTS,
  NETWORKS_ANNOTATION,
  type NetworkRef,
  parseAttachments,
  parseRef,
  refText,
} from './attachments.ts';

export interface NetworkInterface {
  /** The name for the user: the VMI's network name, else the interface's name in the pod. */
  readonly name: string;
  /** `pod` is the interface that every pod has; multus adds the `secondary` ones. */
  readonly role: 'pod' | 'secondary';
  /** Undefined: the cluster's pod network, which has no definition. */
  readonly ref: NetworkRef | undefined;
}

interface InterfaceSources {
  readonly namespace: string;
  /** Absent at the admission of a VM or VMI, which has no pod yet. */
  readonly pod?:
    | { readonly metadata: Pick<MetaShape, 'annotations'>; readonly spec: Pick<PodShape['spec'], 'hostNetwork'> }
    | undefined;
  /** Absent for a pod that is not a launcher. */
  readonly vmi?: { readonly spec: Pick<VmiShape['spec'], 'networks'> } | undefined;
  /** The namespace's primary user-defined network, which replaces the pod network. */
  readonly primary?: NetworkRef | undefined;
}

/** The label on a namespace whose pods are on a primary user-defined network of OVN-Kubernetes. */
export const PRIMARY_NETWORK_LABEL = 'k8s.ovn.org/primary-user-defined-network';

/** By the namespace's label and a definition with the role primary. Source: OVN-Kubernetes, okep-5193. */
export type PrimaryNetwork =
  | { readonly kind: 'none' }
  | { readonly kind: 'primary'; readonly ref: NetworkRef }
  /** The namespace has the label and no such definition yet: OVN-Kubernetes does not start pods in it. */
  | { readonly kind: 'missing' };

/**
 * The pod network first. If there is a pod, its annotation decides, because multus attaches exactly those networks.
 * KubeVirt writes attachments in the order of the VMI's networks with hashed interface names: the n-th attachment of a
 * definition is the n-th VMI network on it. @throws ParseError if malformed, or too many
 */
export function interfacesOf(sources: InterfaceSources): readonly NetworkInterface[] {
  const { namespace, pod, vmi } = sources;
  if (pod?.spec.hostNetwork === true) return [];
  const annotations = pod?.metadata.annotations ?? {};
  const networks = vmi?.spec.networks ?? [];
  if (networks.length > MAX_ATTACHMENTS) {
    throw new ParseError('networks of the VM', networks[0]?.name ?? '', `there are more than ${MAX_ATTACHMENTS}`);
  }
  const secondary = networks.flatMap(({ name, multus }) =>
    multus && multus.default !== true ? [{ name, ref: parseRef(multus.networkName, namespace) }] : [],
  );
  const attached =
    pod === undefined
      ? secondary.map(({ name, ref }): NetworkInterface => ({ name, role: 'secondary', ref }))
      : named(parseAttachments(annotations[NETWORKS_ANNOTATION] ?? '', namespace), secondary);
  const first = podInterface(sources, annotations[DEFAULT_NETWORK_ANNOTATION]);
  return first === undefined ? attached : [first, ...attached];
}

/** The interface on the pod network; undefined for a VMI without one (its launcher has one, the guest does not). */
function podInterface(sources: InterfaceSources, defaultNetwork: string | undefined): NetworkInterface | undefined {
  const { namespace, vmi, primary } = sources;
  const guest = vmi?.spec.networks?.find(({ pod, multus }) => Boolean(pod) || multus?.default === true);
  if (vmi !== undefined && guest === undefined) return undefined;
  const chosen =
    defaultNetwork === undefined
      ? guest?.multus && parseRef(guest.multus.networkName, namespace)
      : parseAttachments(defaultNetwork, namespace)[0];
  const ref = chosen ?? primary;
  return { name: guest?.name ?? 'eth0', role: 'pod', ref: ref && { namespace: ref.namespace, name: ref.name } };
}

function named(
  attachments: readonly Attachment[],
  vmiNetworks: readonly { readonly name: string; readonly ref: NetworkRef }[],
): NetworkInterface[] {
  const waiting = groupBy(vmiNetworks, ({ ref }) => refText(ref));
  return attachments.map((attachment, index): NetworkInterface => {
    const ref = { namespace: attachment.namespace, name: attachment.name };
    // Multus assigns names that the annotation does not have: net1, net2, by position in the list.
    const name = waiting.get(refText(ref))?.shift()?.name ?? attachment.interface ?? `net${index + 1}`;
    return { name, role: 'secondary', ref };
  });
}

/** `required`: only on the NUMA node of the NIC. `preferred`: such a node has a higher score. `none`: anywhere. */
const AFFINITIES = ['required', 'preferred', 'none'] as const;
export type Affinity = (typeof AFFINITIES)[number];

export const PREFERRED_EFFECT =
  '"preferred" decides the score of nodes only; the kubelet does not know it and may place the VM on another NUMA node; use "required" to keep the VM near its network';

/** Tenants write it, and messages may contain each name. */
const MAX_ANNOTATION_CHARACTERS = 16 * 1024;
const MAX_REQUESTED_NETWORKS = 256;

/** In the order of the annotation. */
export type AffinityByInterface = ReadonlyMap<string, Affinity>;

const WHAT = `annotation ${NUMA_AFFINITY_ANNOTATION}`;
const EXAMPLE = 'expected an object of names and affinities, as in {"dpdk-east":"required","mgmt":"none"}';

/** Parses `{"<interface or network name>": "required" | …}`. @throws ParseError naming the wrong entry */
export function parseAffinities(text: string): AffinityByInterface {
  const refusal = (why: string, cause?: unknown) => new ParseError(WHAT, text, why, { cause });
  if (text.length > MAX_ANNOTATION_CHARACTERS)
    throw refusal(`it has more than ${MAX_ANNOTATION_CHARACTERS} characters`);
  if (text.trim() === '') return new Map();
  let data: unknown;
  try {
    data = JSON.parse(text);
  } catch (cause) {
    throw refusal(`it is not JSON; ${EXAMPLE}`, cause);
  }
  if (!isObject(data)) throw refusal(EXAMPLE);
  // Not by a record of zod, which drops the name `__proto__`.
  const entries = Object.entries(data).map(([name, value]): [string, Affinity] => {
    const affinity = AFFINITIES.find((candidate) => candidate === value);
    if (affinity !== undefined) return [name, affinity];
    const quoted = quote(typeof value === 'string' ? value : JSON.stringify(value));
    throw refusal(`${quote(name)} has the value ${quoted}; expected one of ${AFFINITIES.join(', ')}`);
  });
  if (entries.length > MAX_REQUESTED_NETWORKS) throw refusal(`it has more than ${MAX_REQUESTED_NETWORKS} names`);
  return new Map(entries);
}
