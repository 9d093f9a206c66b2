import assert from 'node:assert/strict';
import { getEventListeners } from 'node:events';
import { join } from 'node:path';
import { Server, type ServerWritableStream, status } from '@grpc/grpc-js';
import {
  createDevicePluginClient,
  type DevicePluginClient,
  registerPlugin,
} from '../../kube/kubelet-api/device-plugin-client.ts';
import {
  type Device,
  type DevicePluginServer,
  DevicePluginService,
  type Empty,
  type ListAndWatchResponse,
  type RegisterRequest,
  RegistrationService,
} from '../../kube/kubelet-api/gen/device-plugin.ts';
import { bindUnix, KubeletApiError, RpcError, SERVER_OPTIONS, unaryHandler } from '../../kube/kubelet-api/transport.ts';
import { eventually } from '../support/eventually.ts';
import { tempDirectories } from '../support/files.ts';

const device = (ID: string, health = 'Healthy'): Device => ({ ID, health, topology: { nodes: [{ ID: 1 }] } });
const hasCode = (code: string) => (error: unknown) => error instanceof KubeletApiError && error.code === code;

describe('a client of a device plugin', () => {
  const temp = tempDirectories();
  let server: Server;
  let client: DevicePluginClient;
  let socket: string;
  let streams: Set<ServerWritableStream<Empty, ListAndWatchResponse>>;
  let watched: number;
  let allocated: (readonly string[])[];
  let started: (readonly string[])[];
  /** The answer to PreStartContainer. */
  let start: () => object;

  beforeEach(async () => {
    [streams, watched, allocated, started, start] = [new Set(), 0, [], [], () => ({})];
    const plugin: DevicePluginServer = {
      getDevicePluginOptions: unaryHandler(() => ({ preStartRequired: true, getPreferredAllocationAvailable: false })),
      listAndWatch: (stream) => {
        watched++;
        streams.add(stream);
        stream.on('cancelled', () => streams.delete(stream));
        stream.write({ devices: [device('a'), device('b')] });
      },
      getPreferredAllocation: unaryHandler(() => ({ containerResponses: [] })),
      allocate: unaryHandler(({ containerRequests }) => {
        allocated.push(...containerRequests.map(({ devicesIds }) => devicesIds));
        const response = { mounts: [], devices: [], annotations: {}, cdiDevices: [] };
        return { containerResponses: containerRequests.map((_, i) => ({ ...response, envs: { CONTAINER: `${i}` } })) };
      }),
      preStartContainer: unaryHandler(({ devicesIds }) => {
        started.push(devicesIds);
        return start();
      }),
    };
    server = new Server(SERVER_OPTIONS);
    server.addService(DevicePluginService, plugin);
    socket = join(temp(), 'plugin.sock');
    await bindUnix(server, socket);
    client = createDevicePluginClient(socket);
  });
  afterEach(() => {
    client.close();
    server.forceShutdown();
  });

  it('allocates devices, with a list and an answer for each container', async () => {
    const responses = await client.allocate([['a', 'b'], ['c']]);
    assert.deepEqual(allocated, [['a', 'b'], ['c']]);
    assert.deepEqual(
      responses.map(({ envs }) => envs),
      [{ CONTAINER: '0' }, { CONTAINER: '1' }],
    );
  });

  it('announces the start of a container with its devices, and fails if the plugin refuses', async () => {
    await client.preStartContainer(['a', 'b']);
    assert.deepEqual(started, [['a', 'b']]);
    start = () => {
      throw new RpcError(status.FAILED_PRECONDITION, 'the CPUs differ');
    };
    await assert.rejects(client.preStartContainer(['c']), {
      code: 'refused',
      message: `PreStartContainer on ${socket}: the CPUs differ`,
    });
  });

  it('yields each list of devices until the signal aborts, which is no error', async () => {
    const stop = new AbortController();
    const lists: string[][] = [];
    for await (const devices of client.listAndWatch(stop.signal)) {
      lists.push(devices.map(({ ID, health }) => `${ID} ${health}`));
      if (lists.length === 2) stop.abort();
      else for (const stream of streams) stream.write({ devices: [device('a', 'Unhealthy')] });
    }
    assert.deepEqual(lists, [['a Healthy', 'b Healthy'], ['a Unhealthy']]);
    await eventually(() => streams.size === 0, 'the plugin sees the end of the watch');
    assert.equal(getEventListeners(stop.signal, 'abort').length, 0);
  });

  it('sends no request for a signal that has already aborted', async () => {
    for await (const _ of client.listAndWatch(AbortSignal.abort())) assert.fail('there is a list');
    await client.options();
    assert.equal(watched, 0);
  });

  it('ends the watch of a caller that stops reading', async () => {
    const stop = new AbortController();
    for await (const _ of client.listAndWatch(stop.signal)) break;
    await eventually(() => streams.size === 0, 'the plugin sees the end of the watch');
    assert.equal(getEventListeners(stop.signal, 'abort').length, 0);
  });

  it('fails if the plugin stops during a watch', async () => {
    const lists: string[][] = [];
    const watching = async () => {
      for await (const devices of client.listAndWatch(new AbortController().signal)) {
        lists.push(devices.map(({ ID }) => ID));
        server.forceShutdown();
      }
    };
    await assert.rejects(
      watching(),
      (error: unknown) =>
        error instanceof KubeletApiError &&
        error.code !== 'failed' &&
        /^ListAndWatch on .*plugin.sock/.test(error.message),
    );
    assert.deepEqual(lists, [['a', 'b']]);
  });
});

describe('the registration of a device plugin', () => {
  const temp = tempDirectories();
  const options = { preStartRequired: true, getPreferredAllocationAvailable: false };
  const request = { endpoint: 'near.sock', resourceName: 'plumbline.dev/near', options };

  it('has the version of the API, and closes its connection', async () => {
    const registered: RegisterRequest[] = [];
    const server = new Server(SERVER_OPTIONS);
    server.addService(RegistrationService, {
      register: unaryHandler((sent: RegisterRequest): Empty => {
        registered.push(sent);
        return {};
      }),
    });
    const socket = join(temp(), 'kubelet.sock');
    await bindUnix(server, socket);
    const pipes = () => process.getActiveResourcesInfo().filter((kind) => kind === 'PipeWrap').length;
    const before = pipes();
    await registerPlugin(socket, request);
    assert.deepEqual(registered, [{ version: 'v1beta1', ...request }]);
    await eventually(() => pipes() <= before, 'the connection is closed');
    server.forceShutdown();
  });

  it('fails if no kubelet listens, or if it hangs', async () => {
    await assert.rejects(registerPlugin(join(temp(), 'kubelet.sock'), request), hasCode('unavailable'));
    const server = new Server(SERVER_OPTIONS);
    server.addService(RegistrationService, { register: unaryHandler(() => new Promise<Empty>(() => undefined)) });
    const socket = join(temp(), 'kubelet.sock');
    await bindUnix(server, socket);
    await assert.rejects(registerPlugin(socket, request, { deadlineSeconds: 0.1 }), hasCode('deadline'));
    server.forceShutdown();
  });
});
