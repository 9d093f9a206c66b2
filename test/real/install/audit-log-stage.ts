import { readFileSync } from 'node:fs';
import { stringify } from 'yaml';
import type { KubernetesObject } from '../control-plane-stage.ts';

export interface AuditedRequest {
  readonly user: string;
  readonly agent: string;
  readonly verb: string;
  readonly group: string;
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

export interface Grant {
  readonly verb: string;
  readonly group: string;
  readonly resource: string;
  readonly namespace: string | undefined;
  readonly name: string | undefined;
  readonly role: string;
}

interface Rule {
  readonly apiGroups?: readonly string[];
  readonly resources?: readonly string[];
  readonly resourceNames?: readonly string[];
  readonly verbs: readonly string[];
}

interface Binding extends KubernetesObject {
  readonly roleRef: { readonly kind: string; readonly name: string };
  readonly subjects?: readonly { readonly kind: string; readonly name: string; readonly namespace?: string }[];
}

/** All permissions that roles among the objects grant to an account, directly or by its namespace's group. */
export function grantsOf(objects: readonly KubernetesObject[], account: { namespace: string; name: string }): Grant[] {
  const bindings = objects.filter(({ kind }) => kind.endsWith('RoleBinding')) as Binding[];
  return (
    bindings
      .filter(({ subjects = [] }) =>
        subjects.some(
          ({ kind, name, namespace }) =>
            (kind === 'ServiceAccount' && name === account.name && namespace === account.namespace) ||
            (kind === 'Group' && name === `system:serviceaccounts:${account.namespace}`),
        ),
      )
      // The permissions of Kubernetes' own scheduler are not part of the manifests.
      .filter(({ roleRef }) => !roleRef.name.startsWith('system:'))
      .flatMap(({ kind, metadata: { namespace }, roleRef }) => {
        const role = objects.find(
          (object) =>
            object.kind === roleRef.kind &&
            object.metadata.name === roleRef.name &&
            (roleRef.kind === 'ClusterRole' || object.metadata.namespace === namespace),
        );
        if (role === undefined) throw new Error(`${kind} ${roleRef.name} binds a role that is not there`);
        const where = kind === 'RoleBinding' ? namespace : undefined;
        const rules = (role['rules'] ?? []) as Rule[];
        return rules.flatMap((rule) => grantsOfRule(rule, where, `${role.kind} ${role.metadata.name}`));
      })
  );
}

function grantsOfRule(rule: Rule, namespace: string | undefined, role: string): Grant[] {
  const { apiGroups = [], resources = [], resourceNames = [undefined], verbs } = rule;
  return verbs.flatMap((verb) =>
    apiGroups.flatMap((group) =>
      resources.flatMap((resource) => resourceNames.map((name) => ({ verb, group, resource, namespace, name, role }))),
    ),
  );
}

export function covers({ verb, group, resource, namespace, name }: Grant, request: AuditedRequest): boolean {
  return (
    verb === request.verb &&
    group === request.group &&
    resource === request.resource &&
    (namespace === undefined || namespace === request.namespace) &&
    (name === undefined || name === request.name)
  );
}

/** `get nodes/configz`, `update leases.coordination.k8s.io plumbline-scheduler-plugin in plumbline-system` */
export function grantText({ verb, group, resource, namespace, name, role }: Grant): string {
  const [plain = '', subresource] = resource.split('/');
  const full = [group === '' ? plain : `${plain}.${group}`, ...(subresource ? [subresource] : [])].join('/');
  return `${verb} ${full}${name ? ` ${name}` : ''}${namespace ? ` in ${namespace}` : ''} (${role})`;
}
