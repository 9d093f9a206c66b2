import * as z from 'zod';
import { firstIssue, PlumblineError } from '../errors.ts';

/** What a cluster's nodes and network operators add to the classification of a definition, which is then pure. */
export interface NetworkContext {
  /** Physnet of each OVS bridge: the inverse of ovn-bridge-mappings. */
  readonly bridgePhysnets: ReadonlyMap<string, string>;
  /** Physnet of each host interface, for plugins with a master interface. */
  readonly interfacePhysnets: ReadonlyMap<string, string>;
  readonly kubeOvnSubnets: readonly KubeOvnSubnet[];
  /** Kube-OVN's Vlans; `provider` is the ProviderNetwork, which corresponds to a physnet in OVN. */
  readonly kubeOvnVlans: readonly KubeOvnVlan[];
}

export interface KubeOvnSubnet {
  readonly name: string;
  /** `<nad>.<namespace>.ovn` for a subnet of an attached network. */
  readonly provider: string;
  /** Empty or absent: the subnet is an overlay network. */
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

export interface BridgeMapping {
  readonly physnet: string;
  readonly bridge: string;
}

/**
 * Parses `physnet:br-ex,tenant-a:br-data`: pairs with an empty side are ignored, the first pair of a physnet applies.
 * Source: ovn-controller(8), ovn-bridge-mappings. @param ignored called with each ignored pair and the reason
 */
export function parseBridgeMappings(
  text: string,
  ignored: (pair: string, why: 'maps nothing' | 'is the second for its physnet') => void = () => undefined,
): readonly BridgeMapping[] {
  const mappedPhysnets = new Set<string>();
  return text.split(',').flatMap((pair) => {
    if (pair.trim() === '') return [];
    const colon = pair.indexOf(':');
    const [physnet, bridge] = [pair.slice(0, colon).trim(), pair.slice(colon + 1).trim()];
    if (colon < 0 || physnet === '' || bridge === '') ignored(pair, 'maps nothing');
    else if (mappedPhysnets.has(physnet)) ignored(pair, 'is the second for its physnet');
    else {
      mappedPhysnets.add(physnet);
      return [{ physnet, bridge }];
    }
    return [];
  });
}

export type ConfiguredContext = Pick<NetworkContext, 'bridgePhysnets' | 'interfacePhysnets'>;

export class NetworkContextError extends PlumblineError {
  constructor(message: string, options?: ErrorOptions) {
    super('network-context', message, options);
  }
}

const schema = z.strictObject({
  /** In the format of `ovs-vsctl get Open_vSwitch . external_ids:ovn-bridge-mappings`. */
  bridgeMappings: z.string().optional(),
  /** For macvlan, ipvlan and vlan networks. */
  interfacePhysnets: z.record(z.string(), z.string().min(1)).optional(),
});

/** An administrator's physnets of bridges and host interfaces. @throws NetworkContextError naming the field */
export function parseConfiguredContext(data: unknown): ConfiguredContext {
  const parsed = schema.safeParse(data ?? {});
  if (!parsed.success) throw new NetworkContextError(`network context: ${firstIssue(parsed.error)}`);
  const { bridgeMappings = '', interfacePhysnets = {} } = parsed.data;
  // If physnets share a bridge, the first one stands for all: they share its uplinks.
  const mappings = parseBridgeMappings(bridgeMappings).toReversed();
  return {
    bridgePhysnets: new Map(mappings.map(({ physnet, bridge }) => [bridge, physnet])),
    interfacePhysnets: new Map(Object.entries(interfacePhysnets)),
  };
}
