import {
  isAlreadyExists,
  isNotFound,
  type KubeClient,
  type PatchType,
  type RequestOptions,
} from '../../kube/client.ts';
import { NODE_TOPOLOGY_API, type NodeTopologyStatus, nodeTopology } from '../../kube/node-topology.ts';
import { isObject } from '../../model/json.ts';
import { AGENT } from '../../model/names.ts';
import { type NodeIdentity, ownedBy } from '../kube-objects/lease.ts';

const COLLECTION = `/apis/${NODE_TOPOLOGY_API.apiVersion}/${NODE_TOPOLOGY_API.plural}`;

/** The field manager of the status. It is the only writer, so it takes over the fields of other managers. */
const APPLY = { fieldManager: AGENT, force: true };

export function createTopologyStore(client: KubeClient, nodeName: string) {
  const path = `${COLLECTION}/${nodeName}`;
  let published: NodeTopologyStatus | undefined;
  /** The last status sent, and what the server kept of it: less if its schema is older. */
  let last: { readonly sent: NodeTopologyStatus; readonly stored: NodeTopologyStatus | undefined } | undefined;
  /** A difference that a write did not remove, so the next write would not remove it either. */
  let futile = '';

  const take = (object: unknown) => {
    published = nodeTopology.parse(object).status;
    if (last !== undefined && JSON.stringify(last.stored) !== JSON.stringify(published)) last = undefined;
  };
  const read = async (signal: AbortSignal, query: RequestOptions['query'] = {}): Promise<boolean> => {
    try {
      take(await client.get(path, { signal, query }));
      return true;
    } catch (error) {
      if (!isNotFound(error)) throw error;
      return false;
    }
  };
  const send = async (type: PatchType, body: object, signal: AbortSignal, query = {}) =>
    take(await client.patch(`${path}/status`, type, body, { signal, query }));

  return {
    get published() {
      return published;
    },

    /** Fields of the last written status that the API server dropped because its definition lacks them. */
    get dropped(): readonly string[] {
      const stored = new Set(Object.keys(last?.stored ?? {}));
      return last === undefined ? [] : Object.keys(last.sent).filter((field) => !stored.has(field));
    },

    /** Reads the object from the API server's cache. @returns whether it exists @throws KubeError */
    read: (signal: AbortSignal) => read(signal, { resourceVersion: '0' }),

    /** Reads the object, and creates it if missing. @returns whether it was missing @throws KubeError */
    async sync(node: NodeIdentity, signal: AbortSignal): Promise<boolean> {
      if (await read(signal)) return false;
      const metadata = { name: nodeName, ownerReferences: [ownedBy(node)] };
      const { apiVersion, kind } = NODE_TOPOLOGY_API;
      try {
        take(await client.create(COLLECTION, { apiVersion, kind, metadata }, { signal }));
      } catch (conflict) {
        if (!isAlreadyExists(conflict)) throw conflict;
        take(await client.get(path, { signal }));
      }
      return true;
    },

    changesTo: (status: NodeTopologyStatus): readonly string[] =>
      Object.keys(createMergePatch(last === undefined ? published : last.sent, status) ?? {}),

    /** Applies the status by server-side apply. @throws KubeError */
    async write(status: NodeTopologyStatus, signal: AbortSignal): Promise<void> {
      last = undefined;
      const { apiVersion, kind } = NODE_TOPOLOGY_API;
      const object = { apiVersion, kind, metadata: { name: nodeName }, status };
      await send('application/apply-patch+yaml', object, signal, APPLY);
      // An apply removes the fields that this manager no longer sends. Remaining differences come from another writer.
      const foreign = JSON.stringify(createMergePatch(published, status) ?? {});
      if (foreign !== '{}' && foreign !== futile) {
        await send('application/merge-patch+json', { status: JSON.parse(foreign) }, signal);
        futile = JSON.stringify(createMergePatch(published, status) ?? {});
      }
      last = { sent: status, stored: published };
    },
  };
}

/** RFC 7386; undefined if they are equal. A list that differs is replaced; members that `to` lacks become null. */
export function createMergePatch(from: unknown, to: unknown): unknown {
  if (!isObject(from) || !isObject(to)) return JSON.stringify(from) === JSON.stringify(to) ? undefined : to;
  const patch: Record<string, unknown> = {};
  for (const [key, value] of Object.entries(to)) {
    if (value === undefined) continue;
    const change = createMergePatch(from[key], value);
    if (change !== undefined) patch[key] = change;
  }
  for (const key of Object.keys(from)) if (to[key] === undefined && from[key] !== undefined) patch[key] = null;
  return Object.keys(patch).length === 0 ? undefined : patch;
}
