import type { CpuSet } from '../../model/cpu-set.ts';
import { isNearResource, nearResource, physnetResource, TUNNEL_RESOURCE } from '../../model/names.ts';
import type { NodeNetworks } from '../../model/networks/common-cell.ts';
import type { AdvertisedResource } from './resources.ts';

/** Maximum number of former and present networks whose resources stay advertised. */
const MOST_KEPT = 256;

type Hint = (cells: CpuSet) => CpuSet;

/**
 * The resources by which pods prefer the node's networks. If a node stops serving such a resource, the resource stays
 * at zero permanently and the kubelet refuses pods that request it. A resource that was served once therefore stays
 * advertised, without a NUMA node.
 */
export interface NearResources {
  /** Whether the last advertisement had a hint, so that devices may name NUMA nodes. */
  readonly hinting: boolean;
  /** Calls the listener when `hinting` changes. @returns a function that ends the subscription */
  subscribe(listener: () => void): () => void;
  /** Takes over the resources that earlier agents left on the Node object. */
  remember(resources: Iterable<string>): void;
  /**
   * @param hint returns the NUMA nodes to report for a network that is on some (see hintCells); undefined if unknown
   */
  advertised(networks: NodeNetworks, slots: number, hint: Hint | undefined): AdvertisedResource[];
}

/** Starts without resources; each call of `advertised` adds to them. */
export function createNearResources(): NearResources {
  const served = new Set<string>();
  const remember = (resources: Iterable<string>) => {
    for (const name of resources) if (isNearResource(name) && served.size < MOST_KEPT) served.add(name);
  };
  const listeners = new Set<() => void>();
  let hinting = false;
  return {
    get hinting() {
      return hinting;
    },
    subscribe(listener) {
      listeners.add(listener);
      return () => void listeners.delete(listener);
    },
    remember,
    advertised({ physnets, tunnel }, slots, hint) {
      if (hinting !== (hint !== undefined)) {
        hinting = hint !== undefined;
        for (const listener of listeners) listener();
      }
      const cellsOf = new Map([...physnets].map(([name, cells]) => [nearResource(physnetResource(name)), cells]));
      if (tunnel !== undefined) cellsOf.set(nearResource(TUNNEL_RESOURCE), tunnel);
      remember(cellsOf.keys());
      return [...served].sort().map((name) => {
        const cells = cellsOf.get(name);
        const named = cells && hint?.(cells);
        return { name, cells: named?.toArray() ?? [], slots, preStart: false, healthy: true };
      });
    },
  };
}

/**
 * Returns the resource without NUMA nodes: a kubelet that has just started may have another configuration than its
 * predecessor.
 */
export function withoutHint(resource: AdvertisedResource): AdvertisedResource {
  return isNearResource(resource.name) ? { ...resource, cells: [] } : resource;
}
