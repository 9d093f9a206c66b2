import { credentials } from '@grpc/grpc-js';
import { PodResourcesListerClient } from './gen/pod-resources.ts';
import { type CallLimits, CHANNEL_OPTIONS, unary, unixAddress } from './transport.ts';

/** Path of the kubelet's PodResources socket below its root directory. */
export const POD_RESOURCES_SOCKET = 'pod-resources/kubelet.sock';

/** The kubelet's PodResources API: which container has which CPUs and devices. */
export type PodResourcesClient = ReturnType<typeof createPodResourcesClient>;

/** Creates a client of the PodResources socket. It connects at the first call and reconnects after each loss. */
export function createPodResourcesClient(socketPath: string) {
  const client = new PodResourcesListerClient(unixAddress(socketPath), credentials.createInsecure(), CHANNEL_OPTIONS);
  return {
    /** Devices and exclusive CPUs by container; empty for a while after the kubelet starts. @throws KubeletApiError */
    async list(limits?: CallLimits) {
      const response = await unary({ method: 'List', socketPath }, {}, client.list.bind(client), limits);
      return response.podResources;
    },
    /** `cpuIds` is empty before the CPU manager starts and under policy none. @throws KubeletApiError */
    allocatable(limits?: CallLimits) {
      const site = { method: 'GetAllocatableResources', socketPath };
      return unary(site, {}, client.getAllocatableResources.bind(client), limits);
    },
    close: () => client.close(),
  };
}
