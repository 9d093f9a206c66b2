import { readFileSync } from 'node:fs';
import { stringify } from 'yaml';

/** One request to the API server, as authorization sees it. */
export interface AuditedRequest {
  readonly user: string;
  /** The program of that account, from its User-Agent. */
  readonly agent: string;
  readonly verb: string;
  readonly group: string;
  /** `pods`, `pods/eviction`. */
  readonly resource: string;
  /** Empty for cluster-scoped objects and for all namespaces. */
  readonly namespace: string;
  readonly name: string;
  /** The answer's status; undefined for a watch in progress. */
  readonly status: number | undefined;
  readonly uri: string;
}

interface Event {
  readonly user: { readonly username: string };
  readonly userAgent?: string;
  readonly verb: string;
  readonly stage: string;
  readonly auditID: string;
  readonly requestURI: string;
  readonly objectRef?: {
    readonly apiGroup?: string;
    readonly resource: string;
    readonly subresource?: string;
    readonly namespace?: string;
    readonly name?: string;
  };
  readonly responseStatus?: { readonly code?: number };
  readonly requestObject?: { readonly spec?: AccessReview };
}

/** A kubelet's review at the API server before it answers a client. */
interface AccessReview {
  readonly user?: string;
  readonly resourceAttributes?: {
    readonly verb: string;
    readonly group?: string;
    readonly resource: string;
    readonly subresource?: string;
    readonly name?: string;
  };
}

/** An audit policy that records every request of Plumbline's accounts, and the reviews of kubelets about them. */
export function auditPolicy(namespaces: readonly string[]): string {
  return stringify({
    apiVersion: 'audit.k8s.io/v1',
    kind: 'Policy',
    omitStages: ['RequestReceived'],
    rules: [
      { level: 'Metadata', userGroups: namespaces.map((name) => `system:serviceaccounts:${name}`) },
      { level: 'Request', resources: [{ group: 'authorization.k8s.io', resources: ['subjectaccessreviews'] }] },
      { level: 'None' },
    ],
  });
}

/** Every request so far, and each started watch. A request to a kubelet counts as a request of its caller. */
export function readAuditLog(file: string): AuditedRequest[] {
  const lines = readFileSync(file, 'utf8').split('\n');
  // The last line may be incomplete.
  const events = lines.slice(0, -1).map((line) => JSON.parse(line) as Event);
  return events.flatMap((event) => requestOf(event) ?? []);
}

function requestOf({
  user,
  userAgent: agent = '',
  verb,
  requestURI: uri,
  objectRef,
  responseStatus,
  requestObject,
}: Event) {
  const asked = requestObject?.spec;
  if (asked?.resourceAttributes) {
    const { verb: asksTo, group = '', resource, subresource, name = '' } = asked.resourceAttributes;
    const request = { verb: asksTo, group, resource: joined(resource, subresource), namespace: '', name };
    return { ...request, user: asked.user ?? '', agent, status: undefined, uri };
  }
  if (objectRef === undefined) return undefined;
  const { apiGroup: group = '', resource, subresource, namespace = '', name = '' } = objectRef;
  const status = responseStatus?.code;
  const request = { verb, group, resource: joined(resource, subresource), namespace, name };
  return { ...request, user: user.username, agent, status, uri };
}

const joined = (resource: string, subresource?: string) => (subresource ? `${resource}/${subresource}` : resource);
