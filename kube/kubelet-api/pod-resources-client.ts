import { credentials } from '@grpc/grpc-js';
import {
  type AllocatableResourcesResponse,
  type GetPodResourcesResponse,
  type ListPodResourcesResponse,
  type PodResources,
  PodResourcesListerClient,
} from './gen/pod-resources.ts';
import { type CallLimits, CHANNEL_OPTIONS, unary, unixAddress } from './transport.ts';

/** Path of the kubelet's PodResources socket below its root directory. */
export const POD_RESOURCES_SOCKET = 'pod-resources/kubelet.sock';

/** The kubelet's PodResources API: which container has which CPUs and devices. */
export interface PodResourcesClient {
  /**
   * Every pod by name, with the devices and exclusive CPUs of each container. Empty for some time after the kubelet
   * starts.
   * @throws KubeletApiError
   */
  list(limits?: CallLimits): Promise<readonly PodResources[]>;
  /**
   * CPUs and devices that the kubelet can assign. `cpuIds` is empty before the CPU manager starts and under policy
   * none.
   * @throws KubeletApiError
   */
  allocatable(limits?: CallLimits): Promise<AllocatableResourcesResponse>;
  /**
   * One pod; undefined if the response has none.
   * @throws KubeletApiError with code `not-found` if the kubelet does not have the pod
   */
  get(name: string, namespace: string, limits?: CallLimits): Promise<PodResources | undefined>;
  close(): void;
}

/** Creates a client of the PodResources socket. It connects at the first call and reconnects after each loss. */
export function createPodResourcesClient(socketPath: string): PodResourcesClient {
  const client = new PodResourcesListerClient(unixAddress(socketPath), credentials.createInsecure(), CHANNEL_OPTIONS);
  return {
    async list(limits) {
      const response = await unary<ListPodResourcesResponse>(
        { method: 'List', socketPath },
        (metadata, options, done) => client.list({}, metadata, options, done),
        limits,
      );
      return response.podResources;
    },
    allocatable(limits) {
      return unary<AllocatableResourcesResponse>(
        { method: 'GetAllocatableResources', socketPath },
        (metadata, options, done) => client.getAllocatableResources({}, metadata, options, done),
        limits,
      );
    },
    async get(podName, podNamespace, limits) {
      const site = { method: 'Get', socketPath };
      const response = await unary<GetPodResourcesResponse>(
        site,
        (metadata, options, done) => client.get({ podName, podNamespace }, metadata, options, done),
        limits,
      );
      return response.podResources;
    },
    close: () => client.close(),
  };
}
