import type { NodeTopologyStatus } from '../../kube/node-topology.ts';
import { reportWithoutPods } from '../../model/kubelet/usage.ts';
import { type PlacementHost, preparedHost } from '../../model/placement/needs.ts';

/**
 * The properties of a node that do not depend on its pods: hardware, kubelet, networks. Nodes of the same model share
 * it, which keeps the memory for each node small: a host of 128 CPUs takes 20 KB of objects.
 */
export interface NodeShape {
  readonly id: number;
  readonly key: string;
  /** The node without pods. */
  readonly empty: PlacementHost;
}

export function createNodeShapes() {
  const shapes = new Map<string, { readonly shape: NodeShape; users: number }>();
  let lastId = 0;
  return {
    /**
     * Returns the shape of a report. Return it with `release`.
     * @throws HostError if the report contradicts itself; ParseError if a list is not a CPU list
     */
    take(status: NodeTopologyStatus): NodeShape {
      const withoutPods = reportWithoutPods(status);
      const key = JSON.stringify(withoutPods);
      let known = shapes.get(key);
      if (known === undefined) {
        known = { shape: { id: ++lastId, key, empty: preparedHost(withoutPods) }, users: 0 };
        shapes.set(key, known);
      }
      known.users++;
      return known.shape;
    },
    release({ key }: NodeShape): void {
      const known = shapes.get(key);
      if (known !== undefined && --known.users === 0) shapes.delete(key);
    },
  };
}
