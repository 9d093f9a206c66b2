import assert from 'node:assert/strict';
import { join } from 'node:path';
import { Server } from '@grpc/grpc-js';
import {
  type PodResources,
  type PodResourcesListerServer,
  PodResourcesListerService,
} from '../../kube/kubelet-api/gen/pod-resources.ts';
import { createPodResourcesClient, type PodResourcesClient } from '../../kube/kubelet-api/pod-resources-client.ts';
import { bindUnix, KubeletApiError, SERVER_OPTIONS, unaryHandler } from '../../kube/kubelet-api/transport.ts';
import { FakeKubelet } from '../node-agent/kubelet-stand-in.ts';
import { eventually } from '../support/eventually.ts';
import { tempDirectories } from '../support/files.ts';
import { podResourcesOf } from '../support/pod-resources.ts';

const hasCode = (code: string) => (error: unknown) => error instanceof KubeletApiError && error.code === code;

describe('PodResources client', () => {
  const temp = tempDirectories();
  let kubelet: FakeKubelet;
  let client: PodResourcesClient;
  let directory: string;

  beforeEach(async () => {
    directory = temp();
    kubelet = new FakeKubelet(directory);
    client = createPodResourcesClient(join(directory, 'pod-resources/kubelet.sock'));
    await kubelet.start();
  });
  afterEach(async () => {
    client.close();
    await kubelet.stop();
  });

  it('reports unavailable with the socket and the next step if there is no socket', async () => {
    const lost = createPodResourcesClient('/nonexistent/kubelet.sock');
    await assert.rejects(
      lost.list(),
      (error) => hasCode('unavailable')(error) && /nonexistent.*kubelet run/.test(String(error)),
    );
    lost.close();
  });

  it('reconnects within its backoff after a restart of the kubelet', async () => {
    await client.list();
    await kubelet.stop();
    await assert.rejects(client.list(), hasCode('unavailable'));
    await kubelet.start();
    await eventually(
      () =>
        client.list().then(
          () => true,
          () => false,
        ),
      'the client connects again',
    );
  });

  /** A server with these pods, and its socket. */
  const serve = async (pods: PodResources[]) => {
    const server = new Server(SERVER_OPTIONS);
    const lister: PodResourcesListerServer = {
      list: unaryHandler(() => ({ podResources: pods })),
      getAllocatableResources: unaryHandler(() => ({ devices: [], cpuIds: [], memory: [] })),
      get: unaryHandler(() => ({ podResources: undefined })),
    };
    server.addService(PodResourcesListerService, lister);
    const socket = join(temp(), 's');
    await bindUnix(server, socket);
    return { server, socket };
  };

  it('accepts an answer of 8 MiB, twice gRPC’s own limit', async () => {
    const name = 'x'.repeat(1024);
    const { server, socket } = await serve(Array.from({ length: 8192 }, () => podResourcesOf({ name })));
    const big = createPodResourcesClient(socket);
    assert.equal((await big.list()).length, 8192);
    big.close();
    server.forceShutdown();
  });
});
