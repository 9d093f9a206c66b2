import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { parseAllDocuments } from 'yaml';
import type { KubeClient } from '../../../kube/client.ts';
import { createApiClient } from '../../../node-agent/api/client.ts';
import { apiAccess } from '../../../node-agent/api/credentials.ts';
import { root } from '../../support/bundles.ts';
import { pathOf } from '../../support/parts.ts';
import { type ControlPlane, type KubernetesObject, startControlPlane } from '../control-plane.ts';

const SYSTEM = 'plumbline-system';
const ACCOUNT = 'plumbline-node-agent';
/** What of the base concerns agents. */
const KINDS = [
  'Namespace',
  'CustomResourceDefinition',
  'ServiceAccount',
  'ClusterRole',
  'ClusterRoleBinding',
  'Role',
  'RoleBinding',
];

/** A real API server with what Plumbline's base gives to agents, and nodes for them to be on. */
export interface InstalledAgents {
  readonly plane: ControlPlane;
  /** The client of the agent on a node, under the token that its pod would have. */
  agent(node: string): Promise<KubeClient>;
  /** A client under a token of the same account that is bound to no pod. */
  unbound(): Promise<KubeClient>;
  stop(): Promise<void>;
}

export async function installAgents(nodes: readonly string[]): Promise<InstalledAgents> {
  const plane = await startControlPlane();
  const clients: KubeClient[] = [];
  const clientOf = async (name: string, token: string) => {
    const kubeconfig = await plane.kubeconfig(name, token);
    const access = apiAccess({ kubeconfig, serviceHost: undefined, servicePort: 443 });
    const client = createApiClient(access, 'plumbline-test');
    clients.push(client);
    return client;
  };
  try {
    await plane.create(...agentObjects());
    await plane.create(
      { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'ovn-kubernetes' } },
      ...nodes.flatMap((name): KubernetesObject[] => [
        { apiVersion: 'v1', kind: 'Node', metadata: { name } },
        {
          apiVersion: 'v1',
          kind: 'Pod',
          metadata: { name: `agent-${name}`, namespace: SYSTEM },
          spec: { nodeName: name, serviceAccountName: ACCOUNT, containers: [{ name: 'node-agent', image: 'x' }] },
        },
      ]),
    );
  } catch (error) {
    await plane.stop();
    throw error;
  }
  return {
    plane,
    async agent(node) {
      const name = `agent-${node}`;
      const pod = (await plane.client.get(`/api/v1/namespaces/${SYSTEM}/pods/${name}`)) as {
        metadata: { uid: string };
      };
      return clientOf(name, await plane.serviceAccountToken(SYSTEM, ACCOUNT, { name, uid: pod.metadata.uid }));
    },
    unbound: async () => clientOf('unbound', await plane.serviceAccountToken(SYSTEM, ACCOUNT)),
    async stop() {
      await Promise.all(clients.map((client) => client.close()));
      await plane.stop();
    },
  };
}

function agentObjects(): KubernetesObject[] {
  const yaml = execFileSync(pathOf('kubectl'), ['kustomize', join(root, 'manifests/base')], {
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'ignore'],
  });
  const objects = parseAllDocuments(yaml).map((document) => document.toJS() as KubernetesObject);
  return objects.filter(
    ({ kind, metadata }) =>
      KINDS.includes(kind) ||
      (kind.startsWith('ValidatingAdmissionPolicy') && metadata.name.startsWith('plumbline-node-agent')),
  );
}
