import { credentials } from '@grpc/grpc-js';
import { KubeletApiError } from './errors.ts';
import {
  type AllocateResponse,
  type ContainerAllocateResponse,
  type Device,
  type DevicePluginOptions,
  DevicePluginClient as GeneratedClient,
  type RegisterRequest,
  RegistrationClient,
} from './gen/device-plugin.ts';
import { type CallLimits, CHANNEL_OPTIONS, unary, unixAddress } from './transport.ts';

export const DEVICE_PLUGIN_VERSION = 'v1beta1';
/** The kubelet's registration socket, inside its device-plugins directory. */
export const KUBELET_SOCKET = 'kubelet.sock';
export const HEALTHY = 'Healthy';
export const UNHEALTHY = 'Unhealthy';

/** The kubelet's own timeout of PreStartContainer. */
export const PRE_START_DEADLINE_SECONDS = 30;

/**
 * Registers a plugin with the kubelet that serves `socketPath`.
 * @throws KubeletApiError
 */
export async function registerPlugin(
  socketPath: string,
  request: { endpoint: string; resourceName: string; options: DevicePluginOptions },
  limits?: CallLimits,
): Promise<void> {
  const client = new RegistrationClient(unixAddress(socketPath), credentials.createInsecure(), CHANNEL_OPTIONS);
  try {
    const message: RegisterRequest = { version: DEVICE_PLUGIN_VERSION, ...request };
    await unary(
      { method: 'Register', socketPath },
      (metadata, options, done) => client.register(message, metadata, options, done),
      limits,
    );
  } finally {
    client.close();
  }
}

/** The kubelet's side of a device plugin. */
export interface DevicePluginClient {
  options(limits?: CallLimits): Promise<DevicePluginOptions>;
  /** Each complete list that the plugin sends. Ends when the signal aborts; throws when the plugin stops. */
  listAndWatch(signal: AbortSignal): AsyncIterable<readonly Device[]>;
  allocate(
    containers: readonly (readonly string[])[],
    limits?: CallLimits,
  ): Promise<readonly ContainerAllocateResponse[]>;
  preStartContainer(deviceIds: readonly string[], limits?: CallLimits): Promise<void>;
  close(): void;
}

/** Creates a client of one plugin's socket, as a kubelet uses it. Every call throws KubeletApiError. */
export function createDevicePluginClient(socketPath: string): DevicePluginClient {
  const client = new GeneratedClient(unixAddress(socketPath), credentials.createInsecure(), CHANNEL_OPTIONS);
  const call = (method: string) => ({ method, socketPath });
  return {
    options: (limits) =>
      unary(
        call('GetDevicePluginOptions'),
        (metadata, options, done) => client.getDevicePluginOptions({}, metadata, options, done),
        limits,
      ),
    async *listAndWatch(signal) {
      if (signal.aborted) return;
      const stream = client.listAndWatch({});
      const cancel = () => stream.cancel();
      signal.addEventListener('abort', cancel);
      try {
        for await (const response of stream) yield response.devices;
      } catch (error) {
        if (!signal.aborted) throw new KubeletApiError('ListAndWatch', socketPath, Object(error));
      } finally {
        signal.removeEventListener('abort', cancel);
        stream.cancel();
      }
    },
    async allocate(containers, limits) {
      const request = { containerRequests: containers.map((ids) => ({ devicesIds: [...ids] })) };
      const send = unary<AllocateResponse>(
        call('Allocate'),
        (metadata, options, done) => client.allocate(request, metadata, options, done),
        limits,
      );
      return (await send).containerResponses;
    },
    async preStartContainer(deviceIds, limits = { deadlineSeconds: PRE_START_DEADLINE_SECONDS }) {
      const request = { devicesIds: [...deviceIds] };
      await unary(
        call('PreStartContainer'),
        (metadata, options, done) => client.preStartContainer(request, metadata, options, done),
        limits,
      );
    },
    close: () => client.close(),
  };
}
