import { type CpuSet, unionOf } from '../../model/cpu-set.ts';
import { few } from '../../model/errors.ts';
import type { NodeNetworks } from '../../model/networks/reach.ts';
import type { SwitchConfig } from './switch-config.ts';
import { type Uplink, UplinkSearch } from './uplinks.ts';

/** A physnet by its name; the tunnel is undefined. */
export type NetworkName = string | undefined;

const MAX_NAMED_DEVICES = 8;
const MAX_NAME_CHARACTERS = 63;

export interface DiscoveredNetworks {
  readonly networks: NodeNetworks;
  readonly down: ReadonlySet<NetworkName>;
  /** Physnets that a poll mode driver must poll. */
  readonly polled: ReadonlySet<NetworkName>;
  readonly doubts: readonly Doubt[];
  /** Interfaces whose carrier the switch does not report, as `hasCarrier` read it: no notification reports a change. */
  readonly carriers: ReadonlyMap<string, boolean | undefined>;
  /** Whether no interface has the address of a tunnel endpoint yet. */
  readonly lacksAddress: boolean;
}

export interface Doubt {
  readonly network: NetworkName;
  readonly text: string;
}

export interface LocateParts {
  readonly sysfsRoot: string;
  /** NUMA nodes of this host that have CPUs. */
  readonly cells: CpuSet;
  readonly interfaceOf: (address: string) => string | undefined;
}

/** A tunnel is where the interface with its endpoint's address is; for a bridge's own, at the bridge's uplinks. */
export function locateNetworks(config: SwitchConfig, parts: LocateParts): DiscoveredNetworks {
  const doubts: Doubt[] = [];
  const down = new Set<NetworkName>();
  const polled = new Set<NetworkName>();
  const carriers = new Map<string, boolean | undefined>();
  const search = new UplinkSearch({ config, sysfsRoot: parts.sysfsRoot, carriers });

  const locate = (network: NetworkName, uplinks: readonly Uplink[]): CpuSet => {
    const what = network === undefined ? 'the tunnel' : `physnet ${network}`;
    if (uplinks.length > 0 && uplinks.every(({ up }) => up === false)) down.add(network);
    if (uplinks.some((uplink) => uplink.polled)) polled.add(network);
    const virtual = uplinks.filter(({ location }) => location.kind !== 'hardware').map(({ name }) => name);
    if (virtual.length > 0) {
      const names = few(virtual, MAX_NAMED_DEVICES, MAX_NAME_CHARACTERS).join(', ');
      doubts.push({ network, text: `${what}: no NIC is behind ${names}, so the network map must state its NUMA node` });
    }
    const unknown = uplinks.flatMap(({ location }) => location.unknown);
    if (unknown.length > 0) {
      const text = `${what}: the kernel does not know the NUMA node of ${few(unknown, MAX_NAMED_DEVICES, MAX_NAME_CHARACTERS).join(', ')}`;
      doubts.push({ network, text });
    }
    const cells = unionOf(uplinks.map(({ location }) => location.cells));
    const foreign = cells.minus(parts.cells);
    if (!foreign.isEmpty) doubts.push({ network, text: `${what} is on NUMA node ${foreign}, which has no CPUs` });
    return cells.intersect(parts.cells);
  };

  const physnets = new Map<string, CpuSet>();
  for (const [physnet, bridges] of config.mappings) {
    const existing = bridges.filter((bridge) => config.bridges.has(bridge));
    const doubt = (why: string) => doubts.push({ network: physnet, text: `physnet ${physnet}: ${why}` });
    for (const bridge of bridges) {
      if (!config.bridges.has(bridge)) doubt(`there is no bridge ${bridge}`);
      else if (search.ofBridge(bridge).length === 0) doubt(`bridge ${bridge} has no uplink`);
    }
    const uplinks = existing.flatMap((bridge) => search.ofBridge(bridge));
    if (existing.length > 0) physnets.set(physnet, locate(physnet, uplinks));
  }

  const tunnelUplinks: Uplink[] = [];
  let lacksAddress = false;
  for (const address of config.encapIps) {
    const name = parts.interfaceOf(address);
    if (name === undefined) {
      const text = `the tunnel: no interface has the address ${address} (ovn-encap-ip)`;
      doubts.push({ network: undefined, text });
      lacksAddress = true;
      continue;
    }
    tunnelUplinks.push(...search.ofInterface(name));
  }
  const tunnel = config.encapIps.length === 0 ? undefined : locate(undefined, tunnelUplinks);
  if (config.hasSeveralEndpoints && tunnel !== undefined && tunnel.size > 1) {
    const text = `the tunnel: OVN instances have endpoints on different NUMA nodes (${tunnel}); all of them count`;
    doubts.push({ network: undefined, text });
  }
  return { networks: { physnets, tunnel }, down, polled, doubts, carriers, lacksAddress };
}
