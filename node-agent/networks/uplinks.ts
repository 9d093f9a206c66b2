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
import type { SwitchBridge, SwitchConfig, SwitchInterface } from './switch-config.ts';

export interface Uplink {
  readonly name: string;
  readonly location: NicLocation;
  readonly up: boolean | undefined;
  readonly polled: boolean;
}

export interface UplinkSources {
  readonly config: Pick<SwitchConfig, 'bridges' | 'integration'>;
  readonly sysfsRoot: string;
  /** Receives each carrier that the switch does not report, as the kernel has it. */
  readonly carriers: Map<string, boolean | undefined>;
}

/** Internal ports of a bridge that are examined for a Linux bridge or bond above them. */
const MAX_INTERNAL_PORTS = 256;

/**
 * A bridge's own NICs count first, through bonds and what is built on them. Only a bridge without one leads further:
 * through patch ports and veth pairs to other bridges, and from an internal port to the Linux bridge or bond that
 * contains it. An integration bridge ends the way, because it leads to the networks of all bridges.
 */
export class UplinkSearch {
  readonly #sources: UplinkSources;
  readonly #bridgeOfPort = new Map<string, string>();
  /** Read once for each bridge, however many physnets use it: every port costs several reads of sysfs. */
  readonly #uplinksOfBridge = new Map<string, readonly Uplink[]>();
  readonly #results = new Map<string, readonly Uplink[]>();
  #byIndex: ReadonlyMap<string, string> | undefined;

  constructor(sources: UplinkSources) {
    this.#sources = sources;
    for (const [name, { internal, patches, interfaces }] of sources.config.bridges) {
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
    const isInternal = this.#sources.config.bridges.get(bridge)?.internal.has(name) === true;
    const nics = isInternal ? this.ofBridge(bridge) : this.#nicsOfInterface(name, new Set());
    return nics.length > 0 ? nics : [this.#kernelUplink(name, undefined)];
  }

  /** @param visited bridges and interfaces that were visited on the way */
  #nicsOfBridge(name: string, visited: Set<string>): Uplink[] {
    const bridge = this.#sources.config.bridges.get(name);
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
    const root = this.#sources.sysfsRoot;
    const byIndex = () => (this.#byIndex ??= interfacesByIndex(root));
    return neighborsOf(root, name, byIndex).flatMap((next) => this.#nicsOfInterface(next, visited));
  }

  #mayEnter(bridge: string): boolean {
    return !this.#sources.config.integration.has(bridge);
  }

  /** The ports of a bridge that are not of guests. If any is hardware, those that are not are left out. */
  #readUplinks(bridge: string): readonly Uplink[] {
    const uplinks = this.#uplinksOfBridge.get(bridge) ?? this.#portsOf(this.#sources.config.bridges.get(bridge));
    this.#uplinksOfBridge.set(bridge, uplinks);
    return uplinks;
  }

  #portsOf(bridge: SwitchBridge | undefined): readonly Uplink[] {
    const uplinks = (bridge?.interfaces ?? []).flatMap((port): Uplink[] => {
      if (port.kind !== 'dpdk') {
        const isGuest = isGuestSide(this.#sources.sysfsRoot, port.name);
        return isGuest ? [] : [{ ...this.#kernelUplink(port.name, port.linkUp), polled: port.kind === 'afxdp' }];
      }
      const location = locateDpdkPort(port, this.#sources.sysfsRoot);
      return location === undefined ? [] : [{ name: port.name, location, up: port.linkUp, polled: true }];
    });
    const hardware = uplinks.filter(({ location }) => location.kind === 'hardware');
    return hardware.length > 0 ? hardware : uplinks;
  }

  /** Uses the switch's link state, which is newer than the discovery, or else the kernel's. */
  #kernelUplink(name: string, linkUp: boolean | undefined): Uplink {
    const { sysfsRoot, carriers } = this.#sources;
    const location = locateNic(sysfsRoot, name);
    if (linkUp !== undefined) return { name, location, up: linkUp, polled: false };
    const up = hasCarrier(sysfsRoot, name);
    carriers.set(name, up);
    return { name, location, up, polled: false };
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
