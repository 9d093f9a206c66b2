import * as z from 'zod';
import { list, map, qualifiedName, uid, word } from '../../kube/bounds.ts';
import type { KubeClient } from '../../kube/client.ts';
import { lease as leaseSchema, managedFields, objectMeta } from '../../kube/resources.ts';
import { nextRenewTime, parseMicroTime } from '../../model/lease/timing.ts';
import { wholeOrNone } from '../../model/quantity.ts';
import type { OwnerReference } from '../../model/shapes.ts';

/** Resources that the Node counts; more than a kubelet has of device plugins. */
const MAX_RESOURCES = 1024;
/** Conditions of a Node; node-problem-detector adds some. */
const MAX_CONDITIONS = 256;
/** Features that a kubelet declares (KEP-5328); 1.36 has five. */
const MAX_FEATURES = 256;
const amounts = map(qualifiedName, word, MAX_RESOURCES).nullish();

const node = z.object({
  metadata: objectMeta.extend({ uid }),
  status: z
    .object({
      nodeInfo: z.object({ kubeletVersion: word }).nullish(),
      conditions: list(z.object({ type: qualifiedName, lastHeartbeatTime: word.nullish() }), MAX_CONDITIONS).nullish(),
      capacity: amounts,
      allocatable: amounts,
      declaredFeatures: list(word, MAX_FEATURES).nullish(),
    })
    .nullish(),
});

export type NodeIdentity = Awaited<ReturnType<typeof readNode>>;

/** Reads the agent's node. @throws KubeError; NotFound if the node has not registered yet */
export async function readNode(client: KubeClient, name: string, signal: AbortSignal) {
  const { metadata, status } = node.parse(await client.get(`/api/v1/nodes/${name}`, { signal }));
  return {
    name,
    uid: metadata.uid,
    kubeletVersion: status?.nodeInfo?.kubeletVersion,
    /** When the kubelet last wrote the status, to the second; undefined before its first time. */
    heartbeat: status?.conditions?.find(({ type }) => type === 'Ready')?.lastHeartbeatTime ?? undefined,
    maxPods: wholeOrNone(status?.capacity?.['pods'] ?? ''),
    /** Quantities by resource; unhealthy devices are capacity, but not allocatable. */
    capacity: status?.capacity ?? {},
    allocatable: status?.allocatable ?? {},
    declaredFeatures: status?.declaredFeatures ?? [],
    labels: metadata.labels ?? {},
  };
}

/** Makes Kubernetes delete an object after the node. Deleting a node does not wait for the objects that it owns. */
export function ownedBy({ name, uid }: { readonly name: string; readonly uid: string }) {
  return { apiVersion: 'v1', kind: 'Node', name, uid, controller: true, blockOwnerDeletion: false };
}

const lease = leaseSchema.extend({ metadata: objectMeta.extend({ managedFields }) });
export type LeaseObject = z.infer<typeof lease>;

export interface LeaseName {
  readonly namespace: string;
  readonly name: string;
}

export const leaseText = ({ namespace, name }: LeaseName): string => `${namespace}/${name}`;

const collection = ({ namespace }: LeaseName) => `/apis/coordination.k8s.io/v1/namespaces/${namespace}/leases`;
const pathOf = (id: LeaseName) => `${collection(id)}/${id.name}`;

/** Reads a Lease. @throws KubeError */
export async function readLease(client: KubeClient, id: LeaseName, signal: AbortSignal): Promise<LeaseObject> {
  return lease.parse(await client.get(pathOf(id), { signal }));
}

/** Creates a Lease; without a renewTime it counts as never renewed. `duration`: whole seconds. @throws KubeError */
export async function createLease(
  client: KubeClient,
  id: LeaseName,
  content: { owner: OwnerReference; holder: string; duration: number; renewTime?: string },
  signal: AbortSignal,
): Promise<void> {
  const { owner, holder, duration, renewTime } = content;
  const object = {
    apiVersion: 'coordination.k8s.io/v1',
    kind: 'Lease',
    metadata: { ...id, ownerReferences: [owner] },
    spec: { holderIdentity: holder, leaseDurationSeconds: duration, ...(renewTime !== undefined && { renewTime }) },
  };
  await client.create(collection(id), object, { signal });
}

/** Changes fields of the Lease (merge patch). @throws KubeError */
export async function patchLease(client: KubeClient, id: LeaseName, patch: object, signal: AbortSignal) {
  return lease.parse(await client.patch(pathOf(id), 'application/merge-patch+json', patch, { signal }));
}

/** RenewTimes that always increase, even if the clock is set back. */
export class Renewals {
  /** Milliseconds since 1970. */
  readonly #wallClock: () => number;
  #last: string | null | undefined;

  constructor(wallClock: () => number) {
    this.#wallClock = wallClock;
  }

  /** Continues after a renewTime that was read, for a restarted process. */
  continueAfter(renewTime: string | null | undefined): void {
    const readTime = parseMicroTime(renewTime ?? '');
    if (readTime !== undefined && readTime > (parseMicroTime(this.#last ?? '') ?? 0n)) this.#last = renewTime;
  }

  next(): string {
    this.#last = nextRenewTime(this.#last, BigInt(Math.floor(this.#wallClock() * 1000)));
    return this.#last;
  }
}
