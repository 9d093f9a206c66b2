import type { NodeTopologyStatus } from '../../kube/node-topology.ts';
import { type PlacementHost, preparedHost } from '../../model/placement/needs.ts';

/**
 * All of a node that its pods do not change: hardware, kubelet, networks. Nodes of one make share it, which is what
 * keeps a node's own memory small: a host of 128 CPUs is 20 KB of objects.
 */
export interface NodeShape {
  readonly id: number;
  readonly key: string;
  /** The node without any pod. */
  readonly empty: PlacementHost;
}

export interface NodeShapes {
  /**
   * The shape of a report; to be given back with `release`.
   * @throws HostError if the report contradicts itself; ParseError if a list is no CPU list
   */
  take(status: NodeTopologyStatus): NodeShape;
  release(shape: NodeShape): void;
}

export function createNodeShapes(): NodeShapes {
  const shapes = new Map<string, { readonly shape: NodeShape; users: number }>();
  let lastId = 0;
  return {
    take(status) {
      const { assignments: _, conditions: __, pinning: ___, refusals: ____, ...lasting } = status;
      const key = JSON.stringify(lasting);
      let known = shapes.get(key);
      if (known === undefined) {
        known = { shape: { id: ++lastId, key, empty: preparedHost({ ...lasting, assignments: [] }) }, users: 0 };
        shapes.set(key, known);
      }
      known.users++;
      return known.shape;
    },
    release({ key }) {
      const known = shapes.get(key);
      if (known !== undefined && --known.users === 0) shapes.delete(key);
    },
  };
}
