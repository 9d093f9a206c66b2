import type { KubeClient } from '../../kube/client.ts';
import { isAlreadyExists, isNotFound } from '../../kube/errors.ts';
import { NODE_TOPOLOGY_API, type NodeTopologyStatus, nodeTopology } from '../../kube/node-topology.ts';
import { type NodeIdentity, ownedBy } from '../node-object.ts';
import { mergePatch } from './merge-patch.ts';

const COLLECTION = `/apis/${NODE_TOPOLOGY_API.apiVersion}/${NODE_TOPOLOGY_API.plural}`;

/** The node's NodeTopology object on the API server. */
export interface TopologyStore {
  /** What is published, as far as it was seen last; undefined before the first `read`. */
  readonly published: NodeTopologyStatus | undefined;
  /** Reads the object and creates it where it is missing. @throws KubeError */
  sync(node: NodeIdentity, signal: AbortSignal): Promise<void>;
  /** Makes the status so. @returns whether anything had to be written. @throws KubeError */
  write(status: NodeTopologyStatus, signal: AbortSignal): Promise<boolean>;
}

export function createTopologyStore(client: KubeClient, nodeName: string): TopologyStore {
  const path = `${COLLECTION}/${nodeName}`;
  let published: NodeTopologyStatus | undefined;

  const take = (object: unknown) => {
    published = nodeTopology.parse(object).status;
  };

  return {
    get published() {
      return published;
    },

    async sync(node, signal) {
      try {
        take(await client.get(path, { signal }));
      } catch (error) {
        if (!isNotFound(error)) throw error;
        const metadata = { name: nodeName, ownerReferences: [ownedBy(node)] };
        const { apiVersion, kind } = NODE_TOPOLOGY_API;
        try {
          take(await client.create(COLLECTION, { apiVersion, kind, metadata }, { signal }));
        } catch (conflict) {
          if (!isAlreadyExists(conflict)) throw conflict;
          take(await client.get(path, { signal }));
        }
      }
    },

    async write(status, signal) {
      const change = mergePatch(published, status);
      if (change === undefined) return false;
      take(await client.patch(`${path}/status`, 'application/merge-patch+json', { status: change }, { signal }));
      return true;
    },
  };
}
