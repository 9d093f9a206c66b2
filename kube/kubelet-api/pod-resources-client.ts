import { credentials } from '@grpc/grpc-js';
import {
  type AllocatableResourcesResponse,
  type GetPodResourcesResponse,
  type ListPodResourcesResponse,
  type PodResources,
  PodResourcesListerClient,
  PodResourcesListerService,
} from './gen/pod-resources.ts';
import { type DeviceFilter, decodeLeanAllocatable, decodeLeanList } from './lean-answers.ts';
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

export interface PodResourcesOptions {
  /** Devices of which resources are wanted; the others, memory and dynamic resources are not even decoded. Default: all. */
  readonly devices?: DeviceFilter;
}

/** A client of the PodResources socket. Connects at the first call and again after each loss. */
export function createPodResourcesClient(
  socketPath: string,
  { devices }: PodResourcesOptions = {},
): PodResourcesClient {
  const client = new PodResourcesListerClient(unixAddress(socketPath), credentials.createInsecure(), CHANNEL_OPTIONS);
  const { list, getAllocatableResources } = PodResourcesListerService;
  const decodeList = devices ? (bytes: Buffer) => decodeLeanList(bytes, devices) : list.responseDeserialize;
  const decodeAllocatable = devices
    ? (bytes: Buffer) => decodeLeanAllocatable(bytes, devices)
    : getAllocatableResources.responseDeserialize;
  return {
    async list(limits) {
      const response = await unary<ListPodResourcesResponse | undefined>(
        { method: 'List', socketPath },
        (metadata, options, done) =>
          client.makeUnaryRequest(list.path, list.requestSerialize, decodeList, {}, metadata, options, done),
        limits,
      );
      return response?.podResources ?? [];
    },
    async allocatable(limits) {
      const { path, requestSerialize } = getAllocatableResources;
      const response = await unary<AllocatableResourcesResponse | undefined>(
        { method: 'GetAllocatableResources', socketPath },
        (metadata, options, done) =>
          client.makeUnaryRequest(path, requestSerialize, decodeAllocatable, {}, metadata, options, done),
        limits,
      );
      return response ?? { devices: [], cpuIds: [], memory: [] };
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
