import { credentials } from '@grpc/grpc-js';
import {
  type AllocatableResourcesResponse,
  type GetPodResourcesResponse,
  type ListPodResourcesResponse,
  type PodResources,
  PodResourcesListerClient,
} from './gen/pod-resources.ts';
import { type CallLimits, CHANNEL_OPTIONS, unary, unixAddress } from './transport.ts';

/** The kubelet's PodResources socket below its root directory. */
export const POD_RESOURCES_SOCKET = 'pod-resources/kubelet.sock';

/** What the kubelet says about who holds which resources. */
export interface PodResourcesClient {
  /**
   * Every pod, by name, with each container's devices and exclusive CPUs. Empty for a while after a kubelet start.
   * @throws KubeletApiError
   */
  list(limits?: CallLimits): Promise<readonly PodResources[]>;
  /**
   * What may be given exclusively; `cpuIds` is empty until the CPU manager has started and under policy none.
   * @throws KubeletApiError
   */
  allocatable(limits?: CallLimits): Promise<AllocatableResourcesResponse>;
  /**
   * One pod.
   * @throws KubeletApiError with code `not-found` if there is none
   */
  get(name: string, namespace: string, limits?: CallLimits): Promise<PodResources | undefined>;
  close(): void;
}

/** A client of the PodResources socket. Connects at the first call and again after each loss. */
export function createPodResourcesClient(socketPath: string): PodResourcesClient {
  const client = new PodResourcesListerClient(unixAddress(socketPath), credentials.createInsecure(), CHANNEL_OPTIONS);
  return {
    async list(limits) {
      const site = { method: 'List', socketPath };
      const response = await unary<ListPodResourcesResponse>(
        site,
        (metadata, options, done) => client.list({}, metadata, options, done),
        limits,
      );
      return response.podResources;
    },
    allocatable(limits) {
      const site = { method: 'GetAllocatableResources', socketPath };
      return unary(
        site,
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
