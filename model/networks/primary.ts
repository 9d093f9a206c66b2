import type { NetworkRef } from './attachments.ts';
import { PRIMARY_NETWORK_LABEL } from './interfaces.ts';
import { isPrimaryNetwork, type NadShape } from './nad.ts';

/** What a namespace's label and definitions say about its primary user-defined network. */
export type PrimaryNetwork =
  /** Pods are on the cluster's own pod network. */
  | { readonly kind: 'none' }
  | { readonly kind: 'primary'; readonly ref: NetworkRef }
  /** The namespace is labelled and has no such definition yet: OVN-Kubernetes will not start pods in it. */
  | { readonly kind: 'missing' };

/**
 * Finds the primary user-defined network of a namespace. A pod on it bears no annotation that would say so: what tells
 * is the namespace's label (its presence, not its value) together with a definition of role primary.
 * Source: OVN-Kubernetes, okep-5193-user-defined-networks.
 */
export function primaryNetworkOf(
  namespace: string,
  labels: Readonly<Record<string, string>> | null | undefined,
  definitions: Iterable<NadShape>,
): PrimaryNetwork {
  if (labels?.[PRIMARY_NETWORK_LABEL] === undefined) return { kind: 'none' };
  for (const nad of definitions) {
    if (nad.metadata.namespace === namespace && nad.metadata.name && isPrimaryNetwork(nad)) {
      return { kind: 'primary', ref: { namespace, name: nad.metadata.name } };
    }
  }
  return { kind: 'missing' };
}
