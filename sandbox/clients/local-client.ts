import type { EventText } from '../../kube/events.ts';
import { formatMicroTime, formatTime } from '../../model/lease/timing.ts';
import { NETWORKS_ANNOTATION, type NetworkRef, parseAttachments } from '../../model/networks/attachments.ts';
import {
  apiVersionOf,
  collectionOf,
  EVENTS,
  LEASES,
  NETWORK_ATTACHMENT_DEFINITIONS,
  PODS,
  type ResourceType,
} from '../api-server/built-in-types.ts';
import type { Call, DeleteOptions, User } from '../api-server/call.ts';
import { ApiError, unlessNotFound } from '../api-server/errors.ts';
import type { ApiServer } from '../api-server/server.ts';
import { bindPod } from '../api-server/subresources.ts';
import { at, type JsonValue, type KubeObject, type KubePod, type Meta } from '../objects.ts';

export interface LocalChange<T> {
  readonly type: 'ADDED' | 'MODIFIED' | 'DELETED';
  readonly object: T;
  readonly previous: T | undefined;
}

export type LocalClient = ReturnType<typeof createLocalClient>;

/** A client in the same process, with the admission, validation and errors of HTTPS. Objects are frozen. */
export function createLocalClient(server: ApiServer, user: User) {
  const { store, registry } = server;
  const call: Call = { user, dryRun: false, warn: () => {} };
  // The only place that casts stored JSON to a typed view.
  const viewed = <T extends KubeObject>(object: KubeObject | undefined) => object as T;
  const targetOf = (type: ResourceType, { metadata: { name, namespace } }: KubeObject) => {
    return { type, name, namespace: type.namespaced ? namespace : undefined };
  };

  const client = {
    get<T extends KubeObject>(type: ResourceType<T>, namespace: string | undefined, name: string): T | undefined {
      return viewed(store.get(collectionOf(type), namespace === undefined ? name : `${namespace}/${name}`));
    },
    list<T extends KubeObject>(type: ResourceType<T>): T[] {
      return store.list(collectionOf(type)).map((object) => viewed(object));
    },
    async create<T extends KubeObject>(type: ResourceType<T>, object: T): Promise<T> {
      const { namespace } = targetOf(type, object);
      return viewed(await registry.create(type, namespace, object as JsonValue, call));
    },
    /** Changes a draft of the current object and writes it; retries after a conflict. */
    async edit<T extends KubeObject>(
      type: ResourceType<T>,
      object: KubeObject,
      change: (draft: T) => void,
      subresource?: 'status',
    ): Promise<T> {
      const target = { ...targetOf(type, object), ...(subresource && { subresource }) };
      const edited = (current: KubeObject) => {
        const draft = structuredClone(current);
        change(viewed(draft));
        return draft;
      };
      return viewed(await registry.change(target, call, edited));
    },
    async delete(type: ResourceType, object: KubeObject, options: DeleteOptions = {}) {
      await registry.delete(targetOf(type, object), options, call).catch(unlessNotFound);
    },
    bind(pod: KubePod, nodeName: string) {
      const body = { target: { kind: 'Node', name: nodeName }, metadata: { uid: pod.metadata.uid ?? '' } };
      return bindPod(registry, targetOf(PODS, pod), body, call);
    },
    /** Writes an Event about an object. Events are best effort: it never rejects with an ApiError. */
    async record(component: string, involved: KubeObject, occurrence: EventText) {
      try {
        await recordEvent(client, component, involved, occurrence, formatTime(Date.now()));
      } catch (error) {
        if (!(error instanceof ApiError)) throw error;
      }
    },
    /** Calls the listener with existing objects (as ADDED) and every later change. Returns a function that ends this. */
    follow<T extends KubeObject>(type: ResourceType<T>, listener: (change: LocalChange<T>) => void): () => void {
      const collection = collectionOf(type);
      for (const object of client.list(type)) listener({ type: 'ADDED', object, previous: undefined });
      return store.subscribe((change) => {
        if (change.collection !== collection) return;
        listener({ type: change.type, object: viewed(change.object), previous: viewed(change.previous) });
      });
    },
  };
  return client;
}

export async function recordEvent(
  client: Pick<LocalClient, 'list' | 'edit' | 'create'>,
  component: string,
  involved: KubeObject,
  { type, reason, message }: EventText,
  time: string,
): Promise<void> {
  const { name, namespace, uid = '' } = involved.metadata;
  const home = namespace ?? 'default';
  const isSame = (event: KubeObject) =>
    event.metadata.namespace === home && event.message === message && event.reason === reason;
  const before = client.list(EVENTS).find((event) => isSame(event) && at(event, 'involvedObject', 'uid') === uid);
  if (before) {
    await client.edit(EVENTS, before, (event) => {
      event.count = Number(event.count ?? 1) + 1;
      event.lastTimestamp = time;
    });
    return;
  }
  await client.create(EVENTS, {
    apiVersion: apiVersionOf(EVENTS),
    kind: EVENTS.kind,
    metadata: { generateName: `${name}.`, namespace: home, name: '' },
    involvedObject: {
      apiVersion: involved.apiVersion,
      kind: involved.kind,
      name,
      uid,
      ...(namespace !== undefined && { namespace }),
    },
    type,
    reason,
    message,
    count: 1,
    firstTimestamp: time,
    lastTimestamp: time,
    source: { component },
    reportingComponent: component,
    reportingInstance: '',
  });
}

/** The first network of a pod that has no definition. @throws ParseError if the annotation is malformed */
export function undefinedNetwork(client: LocalClient, { metadata }: KubePod): NetworkRef | undefined {
  const attachments = parseAttachments(metadata.annotations?.[NETWORKS_ANNOTATION] ?? '', metadata.namespace ?? '');
  return attachments.find(({ namespace, name }) => !client.get(NETWORK_ATTACHMENT_DEFINITIONS, namespace, name));
}

export interface RenewedLeaseOptions {
  readonly client: LocalClient;
  readonly metadata: Meta & { readonly namespace: string };
  readonly holder: string;
  readonly durationSeconds: number;
  readonly intervalSeconds: number;
  readonly onFault: (error: unknown) => void;
}

/** A Lease that its only holder renews: of a kubelet for its node, or of a scheduler whose name nothing else has. */
export class RenewedLease {
  readonly #options: RenewedLeaseOptions;
  #timer: NodeJS.Timeout | undefined;
  #writing: Promise<void> = Promise.resolve();

  constructor(options: RenewedLeaseOptions) {
    this.#options = options;
  }

  async start(): Promise<void> {
    const { holder, intervalSeconds, onFault } = this.#options;
    await this.#write(holder);
    this.#timer = setInterval(() => {
      this.#writing = this.#write(holder).catch(onFault);
    }, intervalSeconds * 1000);
  }

  async stop(): Promise<void> {
    clearInterval(this.#timer);
    await this.#writing;
  }

  async release(): Promise<void> {
    await this.stop();
    await this.#write('').catch(this.#options.onFault);
  }

  async #write(holderIdentity: string): Promise<void> {
    const { client, metadata, durationSeconds } = this.#options;
    const renewTime = formatMicroTime(BigInt(Date.now()) * 1000n);
    const spec = { holderIdentity, leaseDurationSeconds: Math.round(durationSeconds), renewTime };
    const lease: KubeObject = { apiVersion: apiVersionOf(LEASES), kind: LEASES.kind, metadata, spec };
    if (!client.get(LEASES, metadata.namespace, metadata.name)) await client.create(LEASES, lease);
    else {
      await client.edit(LEASES, lease, (draft) => {
        draft['spec'] = spec;
      });
    }
  }
}
