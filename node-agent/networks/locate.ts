import {
  hasCarrier,
  interfacesByIndex,
  isGuestSide,
  locateNic,
  locatePci,
  type NicLocation,
  neighborsOf,
} from '../../hardware/nic-cells.ts';
import { CpuSet, unionOf } from '../../model/cpu-set.ts';
import { few } from '../../model/errors.ts';
import type { NodeNetworks } from '../../model/networks/reach.ts';
import type { SwitchBridge, SwitchConfig, SwitchInterface } from './switch-config.ts';

/** A physnet by its name; the tunnel is undefined. */
export type NetworkName = string | undefined;

/** For messages. */
export const networkText = (network: NetworkName): string =>
  network === undefined ? 'the tunnel' : `physnet ${network}`;

const MAX_NAMED_DEVICES = 8;
const MAX_NAME_CHARACTERS = 63;
const fewNames = (names: readonly string[]) => few(names, MAX_NAMED_DEVICES, MAX_NAME_CHARACTERS).join(', ');

export interface DiscoveredNetworks {
  readonly networks: NodeNetworks;
  readonly down: ReadonlySet<NetworkName>;
  /** Physnets that a poll mode driver must poll. */
  readonly polled: ReadonlySet<NetworkName>;
  readonly doubts: readonly { readonly network: NetworkName; readonly text: string }[];
  /** Interfaces whose carrier the switch does not report, as `hasCarrier` read it: no notification reports a change. */
  readonly carriers: ReadonlyMap<string, boolean | undefined>;
  /** Whether no interface has the address of a tunnel endpoint yet. */
  readonly lacksAddress: boolean;
}

interface LocateParts {
  readonly sysfsRoot: string;
  /** NUMA nodes of this host that have CPUs. */
  readonly cells: CpuSet;
  readonly interfaceOf: (address: string) => string | undefined;
}

/** A tunnel is where the interface with its endpoint's address is; for a bridge's own, at the bridge's uplinks. */
export function locateNetworks(config: SwitchConfig, parts: LocateParts): DiscoveredNetworks {
  const doubts: { network: NetworkName; text: string }[] = [];
  const down = new Set<NetworkName>();
  const polled = new Set<NetworkName>();
  const search = new UplinkSearch(config, parts.sysfsRoot);
  const doubt = (network: NetworkName, why: string) => doubts.push({ network, text: `${networkText(network)}${why}` });

  const locate = (network: NetworkName, uplinks: readonly Uplink[]): CpuSet => {
    if (uplinks.length > 0 && uplinks.every(({ up }) => up === false)) down.add(network);
    if (uplinks.some((uplink) => uplink.polled)) polled.add(network);
    const virtual = uplinks.filter(({ location }) => location.kind !== 'hardware').map(({ name }) => name);
    if (virtual.length > 0) {
      doubt(network, `: no NIC is behind ${fewNames(virtual)}, so the network map must state its NUMA node`);
    }
    const unknown = uplinks.flatMap(({ location }) => location.unknown);
    if (unknown.length > 0) doubt(network, `: the kernel does not know the NUMA node of ${fewNames(unknown)}`);
    const cells = unionOf(uplinks.map(({ location }) => location.cells));
    const foreign = cells.minus(parts.cells);
    if (!foreign.isEmpty) doubt(network, ` is on NUMA node ${foreign}, which has no CPUs`);
    return cells.intersect(parts.cells);
  };

  const physnets = new Map<string, CpuSet>();
  for (const [physnet, bridges] of config.mappings) {
    const existing = bridges.filter((bridge) => config.bridges.has(bridge));
    for (const bridge of bridges) {
      if (!config.bridges.has(bridge)) doubt(physnet, `: there is no bridge ${bridge}`);
      else if (search.ofBridge(bridge).length === 0) doubt(physnet, `: bridge ${bridge} has no uplink`);
    }
    const uplinks = existing.flatMap((bridge) => search.ofBridge(bridge));
    if (existing.length > 0) physnets.set(physnet, locate(physnet, uplinks));
  }

  const endpoints = config.encapIps.map((address) => ({ address, name: parts.interfaceOf(address) }));
  const missing = endpoints.filter(({ name }) => name === undefined);
  for (const { address } of missing) doubt(undefined, `: no interface has the address ${address} (ovn-encap-ip)`);
  const tunnelUplinks = endpoints.flatMap(({ name }) => (name === undefined ? [] : search.ofInterface(name)));
  const tunnel = endpoints.length === 0 ? undefined : locate(undefined, tunnelUplinks);
  if (config.hasSeveralEndpoints && tunnel !== undefined && tunnel.size > 1) {
    doubt(undefined, `: OVN instances have endpoints on different NUMA nodes (${tunnel}); all of them count`);
  }
  const { carriers } = search;
  return { networks: { physnets, tunnel }, down, polled, doubts, carriers, lacksAddress: missing.length > 0 };
}

interface Uplink {
  readonly name: string;
  readonly location: NicLocation;
  readonly up: boolean | undefined;
  readonly polled: boolean;
}

/** Internal ports of a bridge that are examined for a Linux bridge or bond above them. */
const MAX_INTERNAL_PORTS = 256;

/**
 * A bridge's own NICs count first, through bonds and what is built on them. Only a bridge without one leads further:
 * through patch ports and veth pairs to other bridges, and from an internal port to the Linux bridge or bond that
 * contains it. An integration bridge ends the way, because it leads to the networks of all bridges.
 */
class UplinkSearch {
  readonly #config: SwitchConfig;
  readonly #sysfsRoot: string;
  /** Each carrier that the switch does not report, as the kernel has it. */
  readonly carriers = new Map<string, boolean | undefined>();
  readonly #bridgeOfPort = new Map<string, string>();
  /** Read once for each bridge, however many physnets use it: every port costs several reads of sysfs. */
  readonly #uplinksOfBridge = new Map<string, readonly Uplink[]>();
  readonly #results = new Map<string, readonly Uplink[]>();
  #byIndex: ReadonlyMap<string, string> | undefined;

  constructor(config: SwitchConfig, sysfsRoot: string) {
    this.#config = config;
    this.#sysfsRoot = sysfsRoot;
    for (const [name, { internal, patches, interfaces }] of config.bridges) {
      const ports = [...internal, ...patches.keys(), ...interfaces.map((port) => port.name)];
      for (const port of ports) this.#bridgeOfPort.set(port, name);
    }
  }

  /** The uplinks of a bridge. Without hardware behind it: its ports that could be uplinks. */
  ofBridge(name: string): readonly Uplink[] {
    const nics = this.#results.get(name) ?? this.#nicsOfBridge(name, new Set());
    const uplinks = nics.length > 0 ? nics : this.#readUplinks(name);
    this.#results.set(name, uplinks);
    return uplinks;
  }

  /** The uplinks behind an interface of the kernel. Without hardware behind it: the interface. */
  ofInterface(name: string): readonly Uplink[] {
    const bridge = this.#bridgeOfPort.get(name) ?? '';
    const isInternal = this.#config.bridges.get(bridge)?.internal.has(name) === true;
    const nics = isInternal ? this.ofBridge(bridge) : this.#nicsOfInterface(name, new Set());
    return nics.length > 0 ? nics : [this.#kernelUplink(name, undefined)];
  }

  /** @param visited bridges and interfaces that were visited on the way */
  #nicsOfBridge(name: string, visited: Set<string>): Uplink[] {
    const bridge = this.#config.bridges.get(name);
    if (bridge === undefined || visited.has(`bridge ${name}`)) return [];
    visited.add(`bridge ${name}`);
    const hardware = this.#readUplinks(name).filter(({ location }) => location.kind === 'hardware');
    if (hardware.length > 0) return hardware;
    const peers = [...bridge.patches.values()].map((peer) => this.#bridgeOfPort.get(peer) ?? '');
    const ports = [...bridge.interfaces.map((port) => port.name), ...[...bridge.internal].slice(0, MAX_INTERNAL_PORTS)];
    return [
      ...peers.filter((peer) => this.#mayEnter(peer)).flatMap((peer) => this.#nicsOfBridge(peer, visited)),
      ...ports.flatMap((port) => this.#nicsOfNeighbors(port, visited)),
    ];
  }

  #nicsOfInterface(name: string, visited: Set<string>): Uplink[] {
    if (visited.has(name)) return [];
    const uplink = this.#kernelUplink(name, undefined);
    if (uplink.location.kind === 'hardware') {
      visited.add(name);
      return [uplink];
    }
    const bridge = this.#bridgeOfPort.get(name);
    const nics = bridge !== undefined && this.#mayEnter(bridge) ? this.#nicsOfBridge(bridge, visited) : [];
    return [...nics, ...this.#nicsOfNeighbors(name, visited)];
  }

  #nicsOfNeighbors(name: string, visited: Set<string>): Uplink[] {
    if (visited.has(name)) return [];
    visited.add(name);
    const byIndex = () => (this.#byIndex ??= interfacesByIndex(this.#sysfsRoot));
    return neighborsOf(this.#sysfsRoot, name, byIndex).flatMap((next) => this.#nicsOfInterface(next, visited));
  }

  #mayEnter(bridge: string): boolean {
    return !this.#config.integration.has(bridge);
  }

  /** The ports of a bridge that are not of guests. If any is hardware, those that are not are left out. */
  #readUplinks(bridge: string): readonly Uplink[] {
    const uplinks = this.#uplinksOfBridge.get(bridge) ?? this.#portsOf(this.#config.bridges.get(bridge));
    this.#uplinksOfBridge.set(bridge, uplinks);
    return uplinks;
  }

  #portsOf(bridge: SwitchBridge | undefined): readonly Uplink[] {
    const uplinks = (bridge?.interfaces ?? []).flatMap((port): Uplink[] => {
      if (port.kind !== 'dpdk') {
        const isGuest = isGuestSide(this.#sysfsRoot, port.name);
        return isGuest ? [] : [{ ...this.#kernelUplink(port.name, port.linkUp), polled: port.kind === 'afxdp' }];
      }
      const location = locateDpdkPort(port, this.#sysfsRoot);
      return location === undefined ? [] : [{ name: port.name, location, up: port.linkUp, polled: true }];
    });
    const hardware = uplinks.filter(({ location }) => location.kind === 'hardware');
    return hardware.length > 0 ? hardware : uplinks;
  }

  /** Uses the switch's link state, which is newer than the discovery, or else the kernel's. */
  #kernelUplink(name: string, linkUp: boolean | undefined): Uplink {
    const up = linkUp ?? hasCarrier(this.#sysfsRoot, name);
    if (linkUp === undefined) this.carriers.set(name, up);
    return { name, location: locateNic(this.#sysfsRoot, name), up, polled: false };
  }
}

const PCI_ADDRESS = /^(?:([0-9a-f]{4}):)?([0-9a-f]{2}:[0-9a-f]{2}\.[0-7])$/i;

/**
 * Locates a DPDK port by the PCI addresses and kernel interfaces in its arguments (a device; the members of a bond; the
 * interface of an AF_XDP or AF_PACKET device), or else by what DPDK reports. Undefined for a representor: a guest's
 * port.
 */
function locateDpdkPort({ name, devargs = '', numaId }: SwitchInterface, root: string): NicLocation | undefined {
  const options = devargs.split(',').map((option) => option.trim());
  if (options.some((option) => option.startsWith('representor='))) return undefined;
  const locations = options.flatMap((option): NicLocation[] => {
    const [key = '', value] = option.split('=');
    if (key === 'iface' && value !== undefined) return [locateNic(root, value)];
    const isMember = key === 'slave' || key === 'member';
    const [, domain = '0000', rest] = PCI_ADDRESS.exec((isMember ? value : option) ?? '') ?? [];
    return rest === undefined ? [] : [locatePci(root, `${domain}:${rest}`.toLowerCase())];
  });
  const cells = unionOf(locations.map((location) => location.cells));
  const unknown = locations.flatMap((location) => location.unknown);
  if (!cells.isEmpty) return { kind: 'hardware', cells, unknown };
  if (numaId !== undefined) return { kind: 'hardware', cells: CpuSet.of([numaId]), unknown: [] };
  return { kind: 'hardware', cells: CpuSet.EMPTY, unknown: [name] };
}
