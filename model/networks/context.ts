/**
 * What a cluster's nodes and its network operators say, beyond a NetworkAttachmentDefinition itself, about where a
 * network's traffic goes. With it, classifying a network is a pure function.
 */
export interface NetworkContext {
  /** OVS bridge to physnet: ovn-bridge-mappings, read backwards. */
  readonly bridgePhysnets: ReadonlyMap<string, string>;
  /** Host interface to physnet, for plugins that name a master. */
  readonly interfacePhysnets: ReadonlyMap<string, string>;
  /** Kube-OVN's Subnets. */
  readonly kubeOvnSubnets: readonly KubeOvnSubnet[];
  /** Kube-OVN's Vlans; `provider` is the ProviderNetwork, which is what OVN calls a physnet. */
  readonly kubeOvnVlans: readonly KubeOvnVlan[];
}

export interface KubeOvnSubnet {
  readonly name: string;
  /** `<nad>.<namespace>.ovn` for a subnet of an attached network. */
  readonly provider: string;
  /** Empty or absent: the subnet is an overlay. */
  readonly vlan?: string | undefined;
}

export interface KubeOvnVlan {
  readonly name: string;
  readonly provider: string;
}

export const EMPTY_CONTEXT: NetworkContext = Object.freeze({
  bridgePhysnets: new Map<string, string>(),
  interfacePhysnets: new Map<string, string>(),
  kubeOvnSubnets: [],
  kubeOvnVlans: [],
});

/** One pair of `external_ids:ovn-bridge-mappings`. */
export interface BridgeMapping {
  readonly physnet: string;
  readonly bridge: string;
}

/**
 * Reads `physnet:br-ex,tenant-a:br-data`. Pairs that lack a side are ignored, as ovn-controller does, and of two pairs
 * for one physnet the first holds.
 * Source: ovn-controller(8), ovn-bridge-mappings.
 * @param ignored called with each pair that does not count, and why
 */
export function parseBridgeMappings(
  text: string,
  ignored: (pair: string, why: 'maps nothing' | 'is the second for its physnet') => void = () => undefined,
): readonly BridgeMapping[] {
  const seen = new Set<string>();
  return text.split(',').flatMap((pair) => {
    if (pair.trim() === '') return [];
    const colon = pair.indexOf(':');
    const physnet = pair.slice(0, colon).trim();
    const bridge = pair.slice(colon + 1).trim();
    if (colon < 0 || physnet === '' || bridge === '') ignored(pair, 'maps nothing');
    else if (seen.has(physnet)) ignored(pair, 'is the second for its physnet');
    else {
      seen.add(physnet);
      return [{ physnet, bridge }];
    }
    return [];
  });
}

/** The mappings backwards. Where physnets share a bridge the first stands for all: they share its uplinks. */
export function physnetsByBridge(mappings: readonly BridgeMapping[]): ReadonlyMap<string, string> {
  const physnets = new Map<string, string>();
  for (const { physnet, bridge } of mappings) if (!physnets.has(bridge)) physnets.set(bridge, physnet);
  return physnets;
}
