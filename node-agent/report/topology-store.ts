import type { KubeClient, PatchType } from '../../kube/client.ts';
import { isAlreadyExists, isNotFound } from '../../kube/errors.ts';
import { NODE_TOPOLOGY_API, type NodeTopologyStatus, nodeTopology } from '../../kube/node-topology.ts';
import { type NodeIdentity, ownedBy } from '../kube-objects/node.ts';
import { createMergePatch } from './merge-patch.ts';

const COLLECTION = `/apis/${NODE_TOPOLOGY_API.apiVersion}/${NODE_TOPOLOGY_API.plural}`;

/** The field manager of the status. It is the only writer, so it takes over what others wrote. */
const APPLY = { fieldManager: 'plumbline-node-agent', force: true };

/** The node's NodeTopology object on the API server. */
export interface TopologyStore {
  /** What is published, as far as it was seen last; undefined before the first `sync`. */
  readonly published: NodeTopologyStatus | undefined;
  /** Reads the object and creates it where it is missing. @throws KubeError */
  sync(node: NodeIdentity, signal: AbortSignal): Promise<void>;
  /** Whether `write` would have anything to write. */
  differs(status: NodeTopologyStatus): boolean;
  /** Fields of the status written last that the API server has dropped, since its definition does not have them. */
  readonly dropped: readonly string[];
  /** Makes the status so, by server-side apply. @throws KubeError */
  write(status: NodeTopologyStatus, signal: AbortSignal): Promise<void>;
}

export function createTopologyStore(client: KubeClient, nodeName: string): TopologyStore {
  const path = `${COLLECTION}/${nodeName}`;
  let published: NodeTopologyStatus | undefined;
  /** What the server was sent last and what it made of that: less, where its schema is an older one. */
  let last: { readonly sent: NodeTopologyStatus; readonly kept: NodeTopologyStatus | undefined } | undefined;
  /** A difference that a write did not remove: the next write would not remove it either. */
  let futile = '';

  const take = (object: unknown) => {
    published = nodeTopology.parse(object).status;
  };
  const send = async (type: PatchType, body: object, signal: AbortSignal, query = {}) =>
    take(await client.patch(`${path}/status`, type, body, { signal, query }));

  return {
    get published() {
      return published;
    },

    get dropped() {
      const kept = new Set(Object.keys(last?.kept ?? {}));
      return last === undefined ? [] : Object.keys(last.sent).filter((field) => !kept.has(field));
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
      if (last !== undefined && JSON.stringify(last.kept) !== JSON.stringify(published)) last = undefined;
    },

    differs: (status) => createMergePatch(last === undefined ? published : last.sent, status) !== undefined,

    async write(status, signal) {
      last = undefined;
      const { apiVersion, kind } = NODE_TOPOLOGY_API;
      const object = { apiVersion, kind, metadata: { name: nodeName }, status };
      await send('application/apply-patch+yaml', object, signal, APPLY);
      // An apply removes what this manager said before and says no more. What else is there, another writer put in.
      const foreign = JSON.stringify(createMergePatch(published, status) ?? {});
      if (foreign !== '{}' && foreign !== futile) {
        await send('application/merge-patch+json', { status: JSON.parse(foreign) }, signal);
        futile = JSON.stringify(createMergePatch(published, status) ?? {});
      }
      last = { sent: status, kept: published };
    },
  };
}
