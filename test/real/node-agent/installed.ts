import { apiAccess } from '../../../kube/api-access.ts';
import type { KubeClient } from '../../../kube/client.ts';
import { createKubeClient } from '../../../kube/client.ts';
import {
  type ControlPlane,
  type ControlPlaneOptions,
  type KubernetesObject,
  startControlPlane,
} from '../control-plane.ts';
import { objectsOf, render } from '../install/rendered.ts';

/** The kinds of the base for agents. */
const KINDS = ['Namespace', 'CustomResourceDefinition', 'ServiceAccount'];
const SYSTEM = 'plumbline-system';
const ACCOUNT = 'plumbline-node-agent';
const DPUS = 'plumbline-dpu';

/** A real API server with the objects of Plumbline's base for agents, and nodes for them. */
export interface InstalledAgents {
  readonly plane: ControlPlane;
  /** The client of the agent on a node, with the token of its pod. */
  agent(node: string): Promise<KubeClient>;
  /** The client of the DPU account with the name of that node, which is created with it. */
  dpu(node: string): Promise<KubeClient>;
  /** A client with a token of the same account that is not bound to a pod. */
  unbound(): Promise<KubeClient>;
  stop(): Promise<void>;
}

/** @param component of the agents' manifests, in addition to their base */
export async function installAgents(
  nodes: readonly string[],
  component?: string,
  options: ControlPlaneOptions = {},
): Promise<InstalledAgents> {
  const plane = await startControlPlane(options);
  const clients: KubeClient[] = [];
  const clientOf = async (name: string, token: string) => {
    const kubeconfig = await plane.kubeconfig(name, token);
    const access = await apiAccess({ kubeconfig, serviceHost: undefined, servicePort: 443 });
    const client = createKubeClient(access, 'plumbline-test');
    clients.push(client);
    return client;
  };
  try {
    await plane.create({ apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'ovn-kubernetes' } });
    await plane.create(
      ...agentObjects(component === undefined ? [] : [`base/node-agent/components/${component}`]),
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
    async dpu(node) {
      await plane.create({ apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name: node, namespace: DPUS } });
      return clientOf(`dpu-${node}`, await plane.serviceAccountToken(DPUS, node));
    },
    unbound: async () => clientOf('unbound', await plane.serviceAccountToken(SYSTEM, ACCOUNT)),
    async stop() {
      await Promise.all(clients.map((client) => client.close()));
      await plane.stop();
    },
  };
}

/** Namespaces, definitions, permissions, and the policies that restrict agents, of the shipped base with components. */
export function agentObjects(components: readonly string[]): KubernetesObject[] {
  return objectsOf(render('base', components)).filter(
    ({ kind, apiVersion, metadata }) =>
      KINDS.includes(kind) ||
      apiVersion.startsWith('rbac.') ||
      (kind.startsWith('ValidatingAdmissionPolicy') &&
        /^plumbline-(node-agent|node-agent-events|dpu|dpu-tokens)$/.test(metadata.name)),
  );
}
