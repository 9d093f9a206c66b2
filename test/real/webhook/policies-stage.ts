import { createKubeClient } from '../../../kube/api-transport.ts';
import type { KubeClient } from '../../../kube/client.ts';
import { kubeconfigAccess } from '../../../kube/kubeconfig.ts';
import { until } from '../../support/until.ts';
import { type ControlPlane, type KubernetesObject, startControlPlane } from '../control-plane-stage.ts';
import { objectsOf, render } from '../install/rendered-fixture.ts';
import { FOREIGN_DEFINITIONS } from './crds-fixture.ts';

export type Policies = Awaited<ReturnType<typeof installPolicies>>;

const GROUP = 'rbac.authorization.k8s.io';
const KINDS = ['Namespace', 'CustomResourceDefinition', 'ServiceAccount', 'PriorityClass'];

export interface PoliciesOptions {
  readonly users?: readonly string[];
  readonly components?: readonly string[];
  readonly apiServerArgs?: readonly string[];
  readonly before?: readonly KubernetesObject[];
  readonly after?: readonly KubernetesObject[];
}

export async function installPolicies(options: PoliciesOptions) {
  const { users = [], components = [], apiServerArgs = [], before = [], after = [] } = options;
  const groupsOf = (name: string) => (name.startsWith('system:node:') ? ',"system:nodes"' : '');
  const tokens = users.map((name) => `token-of-${name},${name},${name}${groupsOf(name)}`);
  const plane = await startControlPlane({ tokens, apiServerArgs });
  const clients: KubeClient[] = [];
  const stop = async () => {
    await Promise.all(clients.map((client) => client.close()));
    await plane.stop();
  };
  const clientOf = async (kubeconfig: Promise<string>) => {
    const client = createKubeClient(kubeconfigAccess(await kubeconfig), 'test');
    clients.push(client);
    return client;
  };
  try {
    const objects = objectsOf(render('base', components)).filter(
      ({ apiVersion, kind }) =>
        KINDS.includes(kind) || apiVersion.startsWith(GROUP) || kind.startsWith('ValidatingAdmissionPolicy'),
    );
    await plane.create(...FOREIGN_DEFINITIONS, ...before, ...objects, ...after);
    await untilTheyHold(plane);
    return {
      plane,
      client: plane.client,
      user: (name: string) => clientOf(plane.kubeconfig(name, `token-of-${name}`)),
      async account(namespace: string, name: string, pod?: string) {
        await plane.create({ apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name, namespace } });
        return clientOf(plane.accountKubeconfig(pod ?? `${namespace}-${name}`, namespace, name, pod));
      },
      stop,
    };
  } catch (error) {
    await stop();
    throw error;
  }
}

/** The API server applies policies in the order of their creation, a moment after they are stored. */
async function untilTheyHold({ client, create }: ControlPlane): Promise<void> {
  const meta = { apiVersion: 'admissionregistration.k8s.io/v1' };
  const probe = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'probe', namespace: 'default' } };
  await create(
    {
      ...meta,
      kind: 'ValidatingAdmissionPolicy',
      metadata: { name: 'last' },
      spec: {
        matchConstraints: {
          resourceRules: [{ apiGroups: [''], apiVersions: ['v1'], operations: ['CREATE'], resources: ['configmaps'] }],
        },
        validations: [{ expression: "object.metadata.name != 'probe'", message: 'the last one holds' }],
      },
    },
    {
      ...meta,
      kind: 'ValidatingAdmissionPolicyBinding',
      metadata: { name: 'last' },
      spec: { policyName: 'last', validationActions: ['Deny'] },
    },
  );
  await until('the policies to be enforced', () =>
    client.create('/api/v1/namespaces/default/configmaps', probe, { query: { dryRun: 'All' } }).then(
      () => false,
      (error: Error) => /the last one holds/.test(error.message),
    ),
  );
}

export function bindingOf(
  subject: object,
  role: string,
  namespace: string | undefined,
  name = `${(subject as { name: string }).name}-${role}`,
): KubernetesObject {
  return {
    apiVersion: `${GROUP}/v1`,
    kind: namespace === undefined ? 'ClusterRoleBinding' : 'RoleBinding',
    metadata: { name, ...(namespace !== undefined && { namespace }) },
    roleRef: { apiGroup: GROUP, kind: 'ClusterRole', name: role },
    subjects: [subject],
  };
}

export const userSubject = (name: string) => ({ apiGroup: GROUP, kind: 'User', name });
