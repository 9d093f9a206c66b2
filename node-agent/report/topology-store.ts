import type { KubeClient } from '../../kube/client.ts';
import { isAlreadyExists, isNotFound } from '../../kube/errors.ts';
import { NODE_TOPOLOGY_API, type NodeTopologyStatus, nodeTopology } from '../../kube/node-topology.ts';
import { type NodeIdentity, ownedBy } from '../node-object.ts';
import { mergePatch } from './merge-patch.ts';

const COLLECTION = `/apis/${NODE_TOPOLOGY_API.apiVersion}/${NODE_TOPOLOGY_API.plural}`;

/** As whom the status is written; nobody else is to write it, so what others wrote is taken over. */
const APPLY = { fieldManager: 'plumbline-node-agent', force: true };

/** The node's NodeTopology object on the API server. */
export interface TopologyStore {
  /** What is published, as far as it was seen last; undefined before the first `read`. */
  readonly published: NodeTopologyStatus | undefined;
  /** Reads the object and creates it where it is missing. @throws KubeError */
  sync(node: NodeIdentity, signal: AbortSignal): Promise<void>;
  /** Makes the status so, by server-side apply. @returns whether anything had to be written. @throws KubeError */
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
      if (mergePatch(published, status) === undefined) return false;
      const { apiVersion, kind } = NODE_TOPOLOGY_API;
      const object = { apiVersion, kind, metadata: { name: nodeName }, status };
      take(await client.patch(`${path}/status`, 'application/apply-patch+yaml', object, { signal, query: APPLY }));
      // An apply removes what this manager said before and says no more. What else is there, somebody else put in.
      const foreign = mergePatch(published, status);
      if (foreign !== undefined) {
        take(await client.patch(`${path}/status`, 'application/merge-patch+json', { status: foreign }, { signal }));
      }
      return true;
    },
  };
}
