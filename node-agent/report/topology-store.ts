import * as z from 'zod';
import {
  isAlreadyExists,
  isNotFound,
  type KubeClient,
  type PatchType,
  type RequestOptions,
} from '../../kube/client.ts';
import { NODE_TOPOLOGY_API, type NodeTopologyStatus, nodeTopology } from '../../kube/node-topology.ts';
import { createMergePatch } from '../../model/json.ts';
import { AGENT } from '../../model/names.ts';
import { type NodeIdentity, ownedBy } from '../kube-objects/lease.ts';

const COLLECTION = `/apis/${NODE_TOPOLOGY_API.apiVersion}/${NODE_TOPOLOGY_API.plural}`;

const versioned = z.object({ metadata: z.object({ resourceVersion: z.string().optional() }) });

/** The field manager of the status. It is the only writer, so it takes over the fields of other managers. */
const APPLY = { fieldManager: AGENT, force: true };

/**
 * The node's NodeTopology on the API server. Owner: this agent, the only writer of the status. Age: the last read or
 * write. End: the next one; a difference that a write did not remove is not written again until it changes.
 */
export class TopologyStore {
  readonly #client: KubeClient;
  readonly #nodeName: string;
  readonly #path: string;
  #published: NodeTopologyStatus | undefined;
  /** The version of the object whose status that is. */
  #version: string | undefined;
  /** The last status sent, and what the server kept of it: less if its schema is older. */
  #last: { readonly sent: NodeTopologyStatus; readonly stored: NodeTopologyStatus | undefined } | undefined;
  /** A difference that a write did not remove, so the next write would not remove it either. */
  #futile = '';

  constructor(client: KubeClient, nodeName: string) {
    this.#client = client;
    this.#nodeName = nodeName;
    this.#path = `${COLLECTION}/${nodeName}`;
  }

  get published(): NodeTopologyStatus | undefined {
    return this.#published;
  }

  /** Fields of the last written status that the API server dropped because its definition lacks them. */
  get dropped(): readonly string[] {
    if (this.#last === undefined) return [];
    const stored = new Set(Object.keys(this.#last.stored ?? {}));
    return Object.keys(this.#last.sent).filter((field) => !stored.has(field));
  }

  /** Reads the object from the API server's cache. @returns whether it exists @throws KubeError */
  read(signal: AbortSignal): Promise<boolean> {
    return this.#read(signal, { resourceVersion: '0' });
  }

  /** Reads the object, and creates it if missing. @returns whether it was missing @throws KubeError */
  async sync(node: NodeIdentity, signal: AbortSignal): Promise<boolean> {
    if (await this.#read(signal)) return false;
    const metadata = { name: this.#nodeName, ownerReferences: [ownedBy(node)] };
    const { apiVersion, kind } = NODE_TOPOLOGY_API;
    try {
      this.#take(await this.#client.create(COLLECTION, { apiVersion, kind, metadata }, { signal }));
    } catch (conflict) {
      if (!isAlreadyExists(conflict)) throw conflict;
      this.#take(await this.#client.get(this.#path, { signal }));
    }
    return true;
  }

  changesTo(status: NodeTopologyStatus): readonly string[] {
    return Object.keys(createMergePatch(this.#last === undefined ? this.#published : this.#last.sent, status) ?? {});
  }

  /** Applies the status by server-side apply. @throws KubeError */
  async write(status: NodeTopologyStatus, signal: AbortSignal): Promise<void> {
    this.#last = undefined;
    const { apiVersion, kind } = NODE_TOPOLOGY_API;
    const object = { apiVersion, kind, metadata: { name: this.#nodeName }, status };
    await this.#send('application/apply-patch+yaml', object, signal, APPLY);
    // An apply removes the fields that this manager no longer sends. Remaining differences come from another writer.
    const foreign = JSON.stringify(createMergePatch(this.#published, status) ?? {});
    if (foreign !== '{}' && foreign !== this.#futile) {
      await this.#send('application/merge-patch+json', { status: JSON.parse(foreign) }, signal);
      this.#futile = JSON.stringify(createMergePatch(this.#published, status) ?? {});
    }
    this.#last = { sent: status, stored: this.#published };
  }

  async #read(signal: AbortSignal, query: RequestOptions['query'] = {}): Promise<boolean> {
    try {
      this.#take(await this.#client.get(this.#path, { signal, query }));
      return true;
    } catch (error) {
      if (!isNotFound(error)) throw error;
      return false;
    }
  }

  async #send(type: PatchType, body: object, signal: AbortSignal, query = {}): Promise<void> {
    this.#take(await this.#client.patch(`${this.#path}/status`, type, body, { signal, query }));
  }

  #take(object: unknown): void {
    const { resourceVersion: version } = versioned.parse(object).metadata;
    if (version !== undefined && version === this.#version) return;
    this.#published = nodeTopology.parse(object).status;
    this.#version = version;
    if (this.#last === undefined) return;
    if (JSON.stringify(this.#last.stored) !== JSON.stringify(this.#published)) this.#last = undefined;
  }
}
