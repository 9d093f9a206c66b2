import { PODS, VIRTUAL_MACHINE_INSTANCES } from '../../../sandbox/api-server/built-in-types.ts';
import { evictionDenial } from '../../../sandbox/api-server/subresources.ts';
import type { EmulatedNode } from '../../../sandbox/cluster/cluster.ts';
import { VirtController } from '../../../sandbox/virt-controller/virt-controller.ts';
import type { JsonAnswer } from '../../support/json-server.ts';
import type { RemoteClient } from '../../support/remote-client.ts';
import type { ControlPlane } from '../control-plane-stage.ts';
import { failure, serveVirtApi } from '../virt-api-stage.ts';
import { FOREIGN_DEFINITIONS } from '../webhook/crds-fixture.ts';

export interface KubeVirt {
  define(plane: ControlPlane): Promise<void>;
  start(on: Cluster): Promise<{ stop(): Promise<void> }>;
}

export interface Cluster {
  readonly plane: ControlPlane;
  readonly client: RemoteClient;
  readonly nodes: readonly EmulatedNode[];
  readonly onFault: (error: unknown) => void;
}

export const KUBEVIRT_STAND_IN: KubeVirt = {
  define: (plane) => plane.create(...FOREIGN_DEFINITIONS),
  async start({ plane, client, onFault }) {
    const controller = new VirtController({ client, onFault });
    controller.start();
    const virtApi = await serveVirtApi(plane, {
      unpause: (namespace, name) => unpause(client, namespace, name),
      async denial(namespace, name) {
        const pod = client.get(PODS, namespace, name);
        return pod && evictionDenial(pod, (vmi) => client.get(VIRTUAL_MACHINE_INSTANCES, namespace, vmi))?.why;
      },
    });
    return {
      async stop() {
        await virtApi.stop();
        await controller.stop();
      },
    };
  },
};

async function unpause(client: RemoteClient, namespace: string, name: string): Promise<JsonAnswer> {
  const vmi = client.get(VIRTUAL_MACHINE_INSTANCES, namespace, name);
  const isPaused = vmi?.status?.conditions?.some(({ type }) => type === 'Paused') === true;
  if (!isPaused) return { status: 409, body: failure(409, 'Conflict', 'VMI is not paused') };
  await client.edit(VIRTUAL_MACHINE_INSTANCES, vmi, (draft) => {
    draft.status = {
      ...draft.status,
      conditions: draft.status?.conditions?.filter(({ type }) => type !== 'Paused') ?? [],
    };
  });
  return { status: 202 };
}
