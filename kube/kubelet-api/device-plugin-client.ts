import { credentials } from '@grpc/grpc-js';
import {
  type Device,
  type DevicePluginOptions,
  DevicePluginClient as GeneratedClient,
  type RegisterRequest,
  RegistrationClient,
} from './gen/device-plugin.ts';
import { type CallLimits, CHANNEL_OPTIONS, KubeletApiError, unary, unixAddress } from './transport.ts';

export const DEVICE_PLUGIN_VERSION = 'v1beta1';
export const PLUGIN_DIRECTORY = 'device-plugins';
export const KUBELET_SOCKET = 'kubelet.sock';
export const HEALTHY = 'Healthy';
export const UNHEALTHY = 'Unhealthy';

/** The kubelet's own timeout of PreStartContainer. */
export const PRE_START_DEADLINE_SECONDS = 30;
const PRE_START_LIMITS = { deadlineSeconds: PRE_START_DEADLINE_SECONDS };

/** Registers a plugin with the kubelet that serves `socketPath`. @throws KubeletApiError */
export async function registerPlugin(
  socketPath: string,
  request: { endpoint: string; resourceName: string; options: DevicePluginOptions },
  limits?: CallLimits,
): Promise<void> {
  const client = new RegistrationClient(unixAddress(socketPath), credentials.createInsecure(), CHANNEL_OPTIONS);
  try {
    const message: RegisterRequest = { version: DEVICE_PLUGIN_VERSION, ...request };
    await unary({ method: 'Register', socketPath }, message, client.register.bind(client), limits);
  } finally {
    client.close();
  }
}

export type DevicePluginClient = ReturnType<typeof createDevicePluginClient>;

/** Creates a client of one plugin's socket, as a kubelet uses it. Every call throws KubeletApiError. */
export function createDevicePluginClient(socketPath: string) {
  const client = new GeneratedClient(unixAddress(socketPath), credentials.createInsecure(), CHANNEL_OPTIONS);
  const call = (method: string) => ({ method, socketPath });
  return {
    options: (limits?: CallLimits) =>
      unary(call('GetDevicePluginOptions'), {}, client.getDevicePluginOptions.bind(client), limits),
    /** Each complete list that the plugin sends. Ends when the signal aborts; throws when the plugin stops. */
    async *listAndWatch(signal: AbortSignal): AsyncGenerator<readonly Device[]> {
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
    async allocate(containers: readonly (readonly string[])[], limits?: CallLimits) {
      const request = { containerRequests: containers.map((ids) => ({ devicesIds: [...ids] })) };
      return (await unary(call('Allocate'), request, client.allocate.bind(client), limits)).containerResponses;
    },
    async preStartContainer(deviceIds: readonly string[], limits: CallLimits = PRE_START_LIMITS) {
      const request = { devicesIds: [...deviceIds] };
      await unary(call('PreStartContainer'), request, client.preStartContainer.bind(client), limits);
    },
    close: () => client.close(),
  };
}
