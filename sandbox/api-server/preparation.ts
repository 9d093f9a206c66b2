import { randomBytes, randomUUID } from 'node:crypto';
import { isFinalPhase } from '../../kube/cluster-view/pods.ts';
import { resultOrNone } from '../../model/json.ts';
import { podRequestOf } from '../../model/kubelet/pod-request.ts';
import { formatTime } from '../../model/lease/timing.ts';
import { parseQuantity } from '../../model/quantity.ts';
import {
  type Container,
  isRecord,
  type JsonRecord,
  type KubeObject,
  type KubePod,
  listAt,
  type Meta,
  sameJson,
} from '../objects.ts';
import type { ResourceType } from './built-in-types.ts';
import type { DeleteOptions } from './call.ts';
import { assertSame, badRequest, conflict, MODIFIED } from './errors.ts';

const SUFFIX_ALPHABET = 'bcdfghjklmnpqrstvwxz2456789';
const MAX_BASE_CHARACTERS = 58;

function generateName(base: string): string {
  const suffix = [...randomBytes(5)].map((byte) => SUFFIX_ALPHABET[byte % SUFFIX_ALPHABET.length]).join('');
  return base.slice(0, MAX_BASE_CHARACTERS) + suffix;
}

const DELETION = ['deletionTimestamp', 'deletionGracePeriodSeconds'] as const;
const NOT_SET_BY_CLIENTS = ['resourceVersion', 'managedFields', 'selfLink', ...DELETION];

/** A new object as it is stored: with defaults and system fields, without the client's status. */
export function prepareCreate(type: ResourceType, sent: KubeObject): KubeObject {
  const object = structuredClone(sent);
  const { metadata } = object;
  if (metadata.resourceVersion) throw badRequest('resourceVersion should not be set on objects to be created');
  for (const field of NOT_SET_BY_CLIENTS) delete metadata[field];
  if (!metadata.name && metadata.generateName) metadata.name = generateName(metadata.generateName);
  metadata.uid = randomUUID();
  metadata.creationTimestamp = formatTime(Date.now());
  if (object.spec !== undefined) metadata.generation = 1;
  // A kubelet creates its Node with a status; the status of any other kind is dropped on create.
  if (type.hasStatus && type.kind !== 'Node') delete object.status;
  if (type.kind === 'Pod') object.status = { phase: 'Pending', qosClass: qosClass(object as KubePod) };
  if (type.kind === 'Namespace') {
    object.spec = { finalizers: ['kubernetes'] };
    object.status = { phase: 'Active' };
    metadata.labels = { ...metadata.labels, 'kubernetes.io/metadata.name': metadata.name };
  }
  return object;
}

export function applyDefaults(type: ResourceType, object: KubeObject): KubeObject {
  if (type.kind !== 'Pod' || !isRecord(object.spec)) return object;
  const { spec } = object as KubePod;
  spec.restartPolicy ??= 'Always';
  spec.terminationGracePeriodSeconds ??= 30;
  spec.dnsPolicy ??= 'ClusterFirst';
  spec.schedulerName ??= 'default-scheduler';
  spec.securityContext ??= {};
  for (const container of [...listAt(spec, 'containers'), ...listAt(spec, 'initContainers')] as Container[]) {
    container.resources ??= {};
    const { limits } = container.resources;
    if (limits) container.resources.requests = { ...limits, ...container.resources.requests };
    for (const amounts of [container.resources.limits ?? {}, container.resources.requests ?? {}]) {
      // JSON allows a bare number for a quantity; it is stored as a string.
      for (const [name, amount] of Object.entries<unknown>(amounts)) {
        if (typeof amount === 'number') amounts[name] = String(amount);
      }
    }
  }
  return object;
}

const SYSTEM_FIELDS = [
  ...(['uid', 'namespace', 'creationTimestamp', 'resourceVersion', 'generation', 'generateName'] as const),
  ...DELETION,
];

/** An update as it is stored: with the current system fields; spec and status change through their own paths. */
export function prepareUpdate(type: ResourceType, subresource: string, current: KubeObject, sent: KubeObject) {
  const draft = structuredClone(sent);
  const old = current.metadata;
  const { metadata } = draft;
  if (metadata.name !== old.name) {
    throw badRequest(`the name of the object (${metadata.name}) does not match the name on the URL (${old.name})`);
  }
  assertSame(type, old.name, 'UID', metadata.uid || undefined, old.uid);
  if (metadata.resourceVersion && metadata.resourceVersion !== old.resourceVersion) {
    throw conflict(type, old.name, MODIFIED);
  }
  const next = subresource === 'status' ? statusUpdate(type, current, draft) : draft;
  if (subresource === '' && type.hasStatus) {
    if (current.status === undefined) delete next.status;
    else next.status = current.status;
  }
  const nextMetadata: JsonRecord = { ...next.metadata };
  delete nextMetadata.managedFields;
  for (const field of SYSTEM_FIELDS) {
    if (old[field] === undefined) delete nextMetadata[field];
    else nextMetadata[field] = old[field];
  }
  next.metadata = nextMetadata as Meta;
  const contents = { ...current, metadata: {}, status: {} };
  if (!sameJson(contents, { ...next, metadata: {}, status: {} }) && old.generation !== undefined) {
    next.metadata.generation = old.generation + 1;
  }
  return next;
}

/** /status of a custom resource only changes the status; that of a built-in one also labels and annotations. */
function statusUpdate(type: ResourceType, current: KubeObject, draft: KubeObject): KubeObject {
  const { status: _old, ...rest } = current;
  const { ownerReferences: _sent, ...sent } = draft.metadata;
  const { ownerReferences = [] } = current.metadata;
  const metadata = type.custom ? current.metadata : { ...sent, ...(ownerReferences.length > 0 && { ownerReferences }) };
  return { ...rest, metadata, ...(draft.status !== undefined && { status: draft.status }) } as KubeObject;
}

/** As the kubelet computes it. Malformed quantities count as none here: validation refuses them afterwards. */
function qosClass(pod: KubePod): 'Guaranteed' | 'Burstable' | 'BestEffort' {
  const { spec } = pod;
  if (resultOrNone(() => podRequestOf(pod).guaranteed) === true) return 'Guaranteed';
  const amounts = [...(spec.containers ?? []), ...(spec.initContainers ?? [])].flatMap(({ resources }) =>
    [resources?.requests, resources?.limits].flatMap((list) => [list?.['cpu'] ?? '0', list?.['memory'] ?? '0']),
  );
  const asks = amounts.some((text) => resultOrNone(() => parseQuantity(text).nano > 0n) === true);
  return asks ? 'Burstable' : 'BestEffort';
}

const hasFinalizers = ({ metadata }: KubeObject) => (metadata.finalizers?.length ?? 0) > 0;

/** A marked object, which waits for its kubelet or its finalizers; `none` if it is marked already. @throws ApiError 409 */
export function deletionOf(
  type: ResourceType,
  object: KubeObject,
  options: DeleteOptions,
): KubeObject | 'remove' | 'none' {
  const { metadata } = object;
  const { uid, resourceVersion } = options.preconditions ?? {};
  assertSame(type, metadata.name, 'UID', uid, metadata.uid);
  assertSame(type, metadata.name, 'ResourceVersion', resourceVersion, metadata.resourceVersion);
  const grace = gracePeriodSeconds(type, object, options);
  if (!hasFinalizers(object) && grace === 0) return 'remove';
  if (metadata.deletionTimestamp !== undefined && (metadata.deletionGracePeriodSeconds ?? 0) <= grace) return 'none';
  const marked = structuredClone(object);
  marked.metadata.deletionTimestamp = formatTime(Date.now() + grace * 1000);
  marked.metadata.deletionGracePeriodSeconds = grace;
  return marked;
}

export function isFinished(object: KubeObject): boolean {
  const { deletionTimestamp, deletionGracePeriodSeconds = 0 } = object.metadata;
  return deletionTimestamp !== undefined && deletionGracePeriodSeconds === 0 && !hasFinalizers(object);
}

function gracePeriodSeconds(type: ResourceType, object: KubeObject, options: DeleteOptions): number {
  if (type.kind !== 'Pod') return 0;
  const { spec, status } = object as KubePod;
  if (!spec.nodeName || isFinalPhase(status?.phase)) return 0;
  const podGracePeriod = spec.terminationGracePeriodSeconds;
  return Math.max(0, options.gracePeriodSeconds ?? (typeof podGracePeriod === 'number' ? podGracePeriod : 30));
}
