import { cut } from '../errors.ts';
import { isObject, type JsonObject, parseJson } from '../json.ts';
import { type ManagedFields, ownsField } from '../shapes.ts';

export const DPU_DETAILS_ANNOTATION = 'k8s.ovn.org/dpu.connection-details';
export const DPU_STATUS_ANNOTATION = 'k8s.ovn.org/dpu.connection-status';

const MAX_CHARACTERS = 64 * 1024;
const MAX_NETWORKS = 64;
const MAX_TEXT_CHARACTERS = 120;

/** Progress of the DPU with one network of a pod; absent: the DPU has not responded. */
export interface DpuConnection {
  /** `default`, or the network attachment's name. */
  readonly network: string;
  readonly state: 'Ready' | 'not ready' | 'absent';
  /** May be empty. */
  readonly reason: string;
}

/**
 * The networks that OVN-Kubernetes' host side asked the DPU to connect, with the DPU's response. Annotations that are
 * no JSON or too large count as empty: a tenant may have written them. Source: ovn-kubernetes
 * go-controller/pkg/util/dpu_annotations.go.
 */
export function dpuConnections(annotations: Readonly<Record<string, string>>): DpuConnection[] {
  const statuses = byNetwork(annotations[DPU_STATUS_ANNOTATION], ['Status', 'status']);
  const requested = Object.keys(byNetwork(annotations[DPU_DETAILS_ANNOTATION], ['pfId', 'vfId', 'sandboxId']));
  return requested.slice(0, MAX_NETWORKS).map((name) => {
    const { Status, status = Status, Reason, reason = Reason } = statuses[name] ?? {};
    const network = cut(name, MAX_TEXT_CHARACTERS);
    if (status === undefined) return { network, state: 'absent', reason: '' };
    const text = typeof reason === 'string' ? cut(reason, MAX_TEXT_CHARACTERS) : '';
    if (status === 'Ready') return { network, state: 'Ready', reason: text };
    const statusText = typeof status === 'string' ? cut(status, MAX_TEXT_CHARACTERS) : 'a status that is not text';
    return { network, state: 'not ready', reason: text || statusText };
  });
}

/** When OVN-Kubernetes last wrote how a pod is connected, RFC 3339 by the API server's clock; undefined: never, or unknown. */
export function connectionsWrittenAt(managedFields: readonly ManagedFields[] = []): string | undefined {
  const times = managedFields.filter(isConnectionWrite).flatMap(({ time }) => time ?? []);
  return times.sort().at(-1);
}

export function isConnectionWrite(entry: ManagedFields): boolean {
  const annotations = [DPU_DETAILS_ANNOTATION, DPU_STATUS_ANNOTATION];
  return annotations.some((name) => ownsField(entry, ['metadata', 'annotations', name]));
}

/** Older releases wrote the fields of a single network without a key. @param fields of that form */
function byNetwork(text: string | undefined, fields: readonly string[]): Record<string, JsonObject> {
  const value = text === undefined || text.length > MAX_CHARACTERS ? undefined : parseJson(text);
  if (!isObject(value)) return {};
  if (fields.some((field) => typeof value[field] === 'string')) return { default: value };
  return Object.fromEntries(Object.entries(value).filter((entry): entry is [string, JsonObject] => isObject(entry[1])));
}
