import assert from 'node:assert/strict';
import { join } from 'node:path';
import { Server, status } from '@grpc/grpc-js';
import { KubeletApiError } from '../../kube/kubelet-api/errors.ts';
import {
  AllocatableResourcesResponse,
  ListPodResourcesResponse,
  type PodResourcesListerServer,
  PodResourcesListerService,
} from '../../kube/kubelet-api/gen/pod-resources.ts';
import { RpcError, unaryHandler } from '../../kube/kubelet-api/handlers.ts';
import { createPodResourcesClient, type PodResourcesClient } from '../../kube/kubelet-api/pod-resources-client.ts';
import { bindUnix, SERVER_OPTIONS } from '../../kube/kubelet-api/transport.ts';
import { createFakeKubelet, type FakeKubelet } from '../node-agent/kubelet-stand-in.ts';
import { eventually } from '../support/eventually.ts';
import { tempDirectories } from '../support/files.ts';

const hasCode = (code: string) => (error: unknown) => error instanceof KubeletApiError && error.code === code;

describe('PodResources client', () => {
  const temp = tempDirectories();
  let kubelet: FakeKubelet;
  let client: PodResourcesClient;
  let directory: string;

  beforeEach(async () => {
    directory = temp();
    kubelet = createFakeKubelet(directory);
    client = createPodResourcesClient(join(directory, 'pod-resources/kubelet.sock'));
    await kubelet.start();
  });
  afterEach(async () => {
    client.close();
    await kubelet.stop();
  });

  it('lists pods, gives allocatable resources, and gets one pod', async () => {
    kubelet.allocatable = '2-3,5';
    kubelet.pods = { 'ns/a': { compute: '2-3', shared: '' } };
    kubelet.devices = { 'ns/a': { 'plumbline.dev/tunnel': ['tunnel-1'] } };
    assert.deepEqual((await client.allocatable()).cpuIds, [2, 3, 5]);
    const [pod] = await client.list();
    assert.equal(pod?.name, 'a');
    assert.deepEqual(
      pod.containers.map(({ name, cpuIds }) => [name, cpuIds]),
      [
        ['compute', [3, 2]],
        ['shared', []],
      ],
    );
    assert.deepEqual(pod.containers[0]?.devices[0]?.deviceIds, ['tunnel-1']);
    assert.equal((await client.get('a', 'ns'))?.namespace, 'ns');
    assert.equal(await client.get('b', 'ns'), undefined);
  });

  it('decodes the wanted devices alone', async () => {
    kubelet.allocatable = '2-3';
    kubelet.pods = { 'ns/a': { compute: '2-3' } };
    kubelet.devices = { 'ns/a': { 'plumbline.dev/tunnel': ['tunnel-1'], 'example.org/gpu': ['gpu-1'] } };
    const namesOf = (pods: Awaited<ReturnType<PodResourcesClient['list']>>) =>
      pods.flatMap(({ containers }) => containers.flatMap(({ devices }) => devices.map((one) => one.resourceName)));
    const picky = createPodResourcesClient(join(directory, 'pod-resources/kubelet.sock'), {
      devices: (name) => name.startsWith('plumbline.dev/'),
    });
    try {
      assert.deepEqual(namesOf(await picky.list()), ['plumbline.dev/tunnel']);
      assert.deepEqual(namesOf(await client.list()).toSorted(), ['example.org/gpu', 'plumbline.dev/tunnel']);
      assert.deepEqual(await picky.allocatable(), { devices: [], cpuIds: [2, 3], memory: [] });
    } finally {
      picky.close();
    }
  });

  const refusals: [number, string][] = [
    [status.RESOURCE_EXHAUSTED, 'exhausted'],
    [status.UNIMPLEMENTED, 'unimplemented'],
    [status.INTERNAL, 'failed'],
  ];
  for (const [grpcStatus, code] of refusals) {
    it(`status ${grpcStatus}: ${code}, with the kubelet’s own text`, async () => {
      kubelet.behaviour = () => {
        throw new RpcError(grpcStatus, 'the kubelet’s own text');
      };
      await assert.rejects(client.list(), (error) => hasCode(code)(error) && /own text/.test(String(error)));
    });
  }

  it('reports unavailable with the socket and the next step if there is no socket', async () => {
    const lost = createPodResourcesClient('/nonexistent/kubelet.sock');
    await assert.rejects(
      lost.list(),
      (error) => hasCode('unavailable')(error) && /nonexistent.*kubelet run/.test(String(error)),
    );
    lost.close();
  });

  it('reports deadline if the kubelet hangs', async () => {
    kubelet.behaviour = () => new Promise(() => {});
    await assert.rejects(client.list({ deadlineSeconds: 0.1 }), hasCode('deadline'));
  });

  it('ends a call when the signal aborts, before or during the call', async () => {
    kubelet.behaviour = () => new Promise(() => {});
    await assert.rejects(client.list({ signal: AbortSignal.abort() }), hasCode('cancelled'));
    await assert.rejects(client.list({ signal: AbortSignal.timeout(50) }), hasCode('cancelled'));
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

  /** A server with these answers, and its socket. */
  const serve = async (answers: Partial<Record<'list' | 'getAllocatableResources', object>>) => {
    const server = new Server(SERVER_OPTIONS);
    const lister: PodResourcesListerServer = {
      list: unaryHandler(() => ListPodResourcesResponse.fromPartial(answers.list ?? {})),
      getAllocatableResources: unaryHandler(() =>
        AllocatableResourcesResponse.fromPartial(answers.getAllocatableResources ?? {}),
      ),
      get: unaryHandler(() => ({ podResources: undefined })),
    };
    server.addService(PodResourcesListerService, lister);
    const socket = join(temp(), 's');
    await bindUnix(server, socket);
    return { server, socket };
  };

  it('decodes the wanted allocatable devices alone', async () => {
    const devices = ['plumbline.dev/tunnel', 'example.org/gpu'].map((resourceName) => ({ resourceName }));
    const { server, socket } = await serve({ getAllocatableResources: { devices } });
    for (const [options, expected] of [
      [{}, ['plumbline.dev/tunnel', 'example.org/gpu']],
      [{ devices: (name: string) => name.startsWith('plumbline.dev/') }, ['plumbline.dev/tunnel']],
    ] as const) {
      const one = createPodResourcesClient(socket, options);
      const { devices: found } = await one.allocatable();
      assert.deepEqual(
        found.map(({ resourceName }) => resourceName),
        expected,
      );
      one.close();
    }
    server.forceShutdown();
  });

  it('accepts an answer of 8 MiB, twice gRPC’s own limit', async () => {
    const name = 'x'.repeat(1024);
    const { server, socket } = await serve({ list: { podResources: Array.from({ length: 8192 }, () => ({ name })) } });
    const big = createPodResourcesClient(socket);
    assert.equal((await big.list()).length, 8192);
    big.close();
    server.forceShutdown();
  });
});
