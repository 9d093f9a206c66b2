import type { CpuSet } from '../../model/cpu-set.ts';
import { isNearResource, nearResource, physnetResource, TUNNEL_RESOURCE } from '../../model/names.ts';
import type { NodeNetworks } from '../../model/networks/common-cell.ts';
import type { AdvertisedResource } from './resources.ts';

/** Networks that a node once had and whose resources are served on. */
const MOST_KEPT = 256;

type Hint = (cells: CpuSet) => CpuSet;

/**
 * The resources by which pods prefer the node's networks. A node that had one and no longer serves it has it at zero for
 * good, and its kubelet refuses pods that request it: so what was served once is served on, near no NUMA node.
 */
export interface NearResources {
  /** Whether what was advertised last names NUMA nodes where it may. */
  readonly hinting: boolean;
  /** Calls back when that changes. @returns a function that ends the subscription */
  subscribe(listener: () => void): () => void;
  /** Takes over what the Node object has of former agents. */
  remember(resources: Iterable<string>): void;
  /**
   * @param hint the NUMA nodes to name for a network that is on some: see hintCells; undefined where it is not known
   */
  advertised(networks: NodeNetworks, slots: number, hint: Hint | undefined): AdvertisedResource[];
}

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

/** The same without a place: a kubelet that has just started may be configured otherwise than the one before. */
export function withoutHint(resource: AdvertisedResource): AdvertisedResource {
  return isNearResource(resource.name) ? { ...resource, cells: [] } : resource;
}
