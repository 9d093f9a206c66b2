import { hasCarrier, isGuestSide, type NicPlace, placeOfNic, placeOfPci } from '../../hardware/nic-cells.ts';
import { CpuSet, unionOf } from '../../model/cpu-set.ts';
import { few } from '../../model/errors.ts';
import type { NodeNetworks } from '../../model/networks/common-cell.ts';
import type { SwitchConfig, SwitchInterface } from './switch-config.ts';

/** A physnet by its name; the tunnel is undefined. */
export type NetworkName = string | undefined;

/** Maximum number of devices in a doubt. */
const NAMED = 8;
const LONGEST_NAME = 63;

/** Locations and states of a node's networks. */
export interface FoundNetworks {
  readonly networks: NodeNetworks;
  /** Networks with uplinks of which none has a carrier. */
  readonly down: ReadonlySet<NetworkName>;
  /** Physnets that a poll mode driver must poll. */
  readonly polled: ReadonlySet<NetworkName>;
  /** Unknown properties of networks, and the reasons; for display. */
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
  /** The interface that has an address. */
  readonly interfaceOf: (address: string) => string | undefined;
}

/** The parts of one search, which collects the carriers that it reads. */
interface Search extends LocateParts {
  readonly carriers: Map<string, boolean | undefined>;
}

interface Uplink {
  readonly name: string;
  readonly place: NicPlace;
  readonly up: boolean | undefined;
  readonly dpdk: boolean;
}

/**
 * Finds the NUMA nodes of each physnet (its bridge's uplinks) and of the tunnel (the interface with the endpoint's
 * address; if it is a bridge's internal interface, the bridge's uplinks).
 */
export function locateNetworks(config: SwitchConfig, parts: LocateParts): FoundNetworks {
  const doubts: Doubt[] = [];
  const down = new Set<NetworkName>();
  const polled = new Set<NetworkName>();
  const search: Search = { ...parts, carriers: new Map() };
  /** Reads each bridge once, however many physnets use it: every port costs several reads of sysfs. */
  const known = new Map<string, readonly Uplink[]>();
  const uplinksOf = (bridge: string): readonly Uplink[] => {
    const uplinks = known.get(bridge) ?? bridgeUplinks(config.bridges.get(bridge)?.interfaces ?? [], search);
    known.set(bridge, uplinks);
    return uplinks;
  };

  const settle = (network: NetworkName, uplinks: readonly Uplink[]): CpuSet => {
    const what = network === undefined ? 'the tunnel' : `physnet ${network}`;
    if (uplinks.length > 0 && uplinks.every(({ up }) => up === false)) down.add(network);
    if (uplinks.some(({ dpdk }) => dpdk)) polled.add(network);
    const unknown = uplinks.flatMap(({ place }) => place.unknown);
    if (unknown.length > 0) {
      const text = `${what}: the kernel does not know the NUMA node of ${few(unknown, NAMED, LONGEST_NAME).join(', ')}`;
      doubts.push({ network, text });
    }
    const found = unionOf(uplinks.map(({ place }) => place.cells));
    const foreign = found.minus(parts.cells);
    if (!foreign.isEmpty) doubts.push({ network, text: `${what} is on NUMA node ${foreign}, which has no CPUs` });
    return found.intersect(parts.cells);
  };

  const physnets = new Map<string, CpuSet>();
  for (const [physnet, bridge] of config.mappings) {
    if (!config.bridges.has(bridge)) {
      doubts.push({ network: physnet, text: `physnet ${physnet}: there is no bridge ${bridge}` });
      continue;
    }
    const uplinks = uplinksOf(bridge);
    if (uplinks.length === 0) {
      doubts.push({ network: physnet, text: `physnet ${physnet}: bridge ${bridge} has no uplink` });
    }
    physnets.set(physnet, settle(physnet, uplinks));
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
    const bridge = [...config.bridges].find(([, { internal }]) => internal.has(name))?.[0];
    tunnelUplinks.push(...(bridge === undefined ? [kernelUplink(name, undefined, search)] : uplinksOf(bridge)));
  }
  const tunnel = config.encapIps.length === 0 ? undefined : settle(undefined, tunnelUplinks);
  return { networks: { physnets, tunnel }, down, polled, doubts, carriers: search.carriers, lacksAddress };
}

/** Skips ports of guests. If any uplink is hardware, it also skips the uplinks that are not. */
function bridgeUplinks(interfaces: readonly SwitchInterface[], search: Search): Uplink[] {
  const uplinks = interfaces.flatMap((one): Uplink[] => {
    if (one.kind === 'system') {
      return isGuestSide(search.sysfsRoot, one.name) ? [] : [kernelUplink(one.name, one.linkUp, search)];
    }
    const place = dpdkPlace(one, search);
    return place === undefined ? [] : [{ name: one.name, place, up: one.linkUp, dpdk: true }];
  });
  const hardware = uplinks.filter(({ place }) => place.kind === 'hardware');
  return hardware.length > 0 ? hardware : uplinks;
}

/** Uses the switch's link state, which is newer than the discovery, or else the kernel's. */
function kernelUplink(name: string, linkUp: boolean | undefined, { sysfsRoot, carriers }: Search): Uplink {
  const place = placeOfNic(sysfsRoot, name);
  if (linkUp !== undefined) return { name, place, up: linkUp, dpdk: false };
  const up = hasCarrier(sysfsRoot, name);
  carriers.set(name, up);
  return { name, place, up, dpdk: false };
}

const PCI_ADDRESS = /^(?:([0-9a-f]{4}):)?([0-9a-f]{2}:[0-9a-f]{2}\.[0-7])$/i;

/**
 * Locates a DPDK port by its PCI address, or else by what DPDK reports. Undefined for a representor: a guest's port.
 */
function dpdkPlace({ name, devargs = '', numaId }: SwitchInterface, { sysfsRoot }: LocateParts): NicPlace | undefined {
  const [device = '', ...options] = devargs.split(',');
  if (options.some((option) => option.startsWith('representor='))) return undefined;
  const [, domain = '0000', rest] = PCI_ADDRESS.exec(device.trim()) ?? [];
  const place = rest === undefined ? undefined : placeOfPci(sysfsRoot, `${domain}:${rest}`.toLowerCase());
  if (place !== undefined && !place.cells.isEmpty) return place;
  if (numaId !== undefined) return { kind: 'hardware', cells: CpuSet.of([numaId]), unknown: [] };
  return { kind: 'hardware', cells: CpuSet.EMPTY, unknown: [name] };
}
