import type { KubernetesObject } from '../control-plane-stage.ts';
import type { AuditedRequest } from './audit-log-stage.ts';

/** One verb on one resource that a role gives to an account. */
export interface Grant {
  readonly verb: string;
  readonly group: string;
  readonly resource: string;
  /** Undefined: in all namespaces. */
  readonly namespace: string | undefined;
  /** Undefined: any name. */
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

/**
 * All permissions that the roles among the objects grant to a service account, directly or through the group of its
 * namespace.
 */
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

/** Whether the grant allows the request. */
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
