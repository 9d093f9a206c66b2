import assert from 'node:assert/strict';
import { join } from 'node:path';
import { Server } from '@grpc/grpc-js';
import { registerPlugin } from '../../kube/kubelet-api/device-plugin-client.ts';
import { type Empty, type RegisterRequest, RegistrationService } from '../../kube/kubelet-api/gen/device-plugin.ts';
import { type PodResourcesListerServer, PodResourcesListerService } from '../../kube/kubelet-api/gen/pod-resources.ts';
import { createPodResourcesClient } from '../../kube/kubelet-api/pod-resources-client.ts';
import { bindUnix, KubeletApiError, SERVER_OPTIONS, unaryHandler } from '../../kube/kubelet-api/transport.ts';
import { FakeKubelet } from '../node-agent/kubelet-stand-in.ts';
import { eventually } from '../support/eventually.ts';
import { tempDirectories } from '../support/files.ts';
import { podResourcesOf } from '../support/pod-resources.ts';

const hasCode = (code: string) => (error: unknown) => error instanceof KubeletApiError && error.code === code;

describe('the sockets of the kubelet', () => {
  const temp = tempDirectories();
  let server: Server;
  let socket: string;
  beforeEach(() => {
    server = new Server(SERVER_OPTIONS);
    socket = join(temp(), 'kubelet.sock');
  });
  afterEach(() => server.forceShutdown());

  it('are connected again within the backoff after a restart of the kubelet', async () => {
    const directory = temp();
    const kubelet = new FakeKubelet(directory);
    const client = createPodResourcesClient(join(directory, 'pod-resources/kubelet.sock'));
    await kubelet.start();
    await client.list();
    await kubelet.stop();
    await assert.rejects(client.list(), hasCode('unavailable'));
    await kubelet.start();
    const lists = () =>
      client.list().then(
        () => true,
        () => false,
      );
    await eventually(lists, 'the client connects again');
    client.close();
    await kubelet.stop();
  });

  it('may answer with 8 MiB, twice gRPC’s own limit', async () => {
    const memory = [{ memoryType: 'memory', size: 2 ** 30, topology: { nodes: [{ ID: 1 }] } }];
    const pod = { name: 'x'.repeat(1024), containers: [{ memory }] };
    const pods = Array.from({ length: 8192 }, () => podResourcesOf(pod));
    const lister: PodResourcesListerServer = {
      list: unaryHandler(() => ({ podResources: pods })),
      getAllocatableResources: unaryHandler(() => ({ devices: [], cpuIds: [], memory: [] })),
      get: unaryHandler(() => ({ podResources: undefined })),
    };
    server.addService(PodResourcesListerService, lister);
    await bindUnix(server, socket);
    const client = createPodResourcesClient(socket);
    const list = await client.list();
    assert.equal(list.length, 8192);
    assert.deepEqual(list[0]?.containers[0]?.memory, memory);
    client.close();
  });

  const options = { preStartRequired: true, getPreferredAllocationAvailable: false };
  const request = { endpoint: 'near.sock', resourceName: 'plumbline.dev/near', options };

  it('take the registration of a device plugin with the version of the API, and its connection is closed', async () => {
    const registered: RegisterRequest[] = [];
    server.addService(RegistrationService, {
      register: unaryHandler((sent: RegisterRequest): Empty => {
        registered.push(sent);
        return {};
      }),
    });
    await bindUnix(server, socket);
    const pipes = () => process.getActiveResourcesInfo().filter((kind) => kind === 'PipeWrap').length;
    const before = pipes();
    await registerPlugin(socket, request);
    assert.deepEqual(registered, [{ version: 'v1beta1', ...request }]);
    await eventually(() => pipes() <= before, 'the connection is closed');
  });

  it('fail a registration if no kubelet listens, or if it hangs', async () => {
    await assert.rejects(registerPlugin(socket, request), hasCode('unavailable'));
    server.addService(RegistrationService, { register: unaryHandler(() => new Promise<Empty>(() => undefined)) });
    await bindUnix(server, socket);
    await assert.rejects(registerPlugin(socket, request, { deadlineSeconds: 0.1 }), hasCode('deadline'));
  });
});
