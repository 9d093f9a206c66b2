import assert from 'node:assert/strict';
import type { KubeClient } from '../../kube/client.ts';
import { createEndpointPublisher } from '../../kube/service-endpoint.ts';
import { recordingLogger } from '../node-agent/support.ts';
import { silent } from '../support/logger.ts';
import { type ApiFixture, startApi } from './api-fixture.ts';

const PATH = '/apis/discovery.k8s.io/v1/namespaces/default/endpointslices/extender';
const ENDPOINTS = '/api/v1/namespaces/default/endpoints/extender';

interface Slice {
  readonly metadata: { readonly resourceVersion: string; readonly labels: Readonly<Record<string, string>> };
  readonly addressType: string;
  readonly endpoints: readonly {
    readonly addresses: readonly string[];
    readonly targetRef?: { readonly name: string };
  }[];
  readonly ports: readonly { readonly name: string; readonly port: number }[];
}

interface Endpoints {
  readonly metadata: { readonly resourceVersion: string; readonly labels: Readonly<Record<string, string>> };
  readonly subsets: readonly {
    readonly addresses: readonly { readonly ip: string; readonly targetRef?: { readonly name: string } }[];
    readonly ports: readonly { readonly name: string; readonly port: number }[];
  }[];
}

describe('the endpoint of a Service without a selector', () => {
  let api: ApiFixture;
  beforeEach(async () => {
    api = await startApi();
  });
  afterEach(() => api.stop());

  const publish = (address: string, port = 9443) =>
    createEndpointPublisher({
      client: api.client,
      namespace: 'default',
      service: 'extender',
      log: silent,
    }).publish({ address, port, portName: 'https', nodeName: 'n1', podName: 'p1' });
  const slice = async () => (await api.client.get(PATH)) as Slice;

  it('is made, left alone while it is right, and replaced by the next one', async () => {
    assert.ok(await publish('10.244.0.1'));
    const first = await slice();
    assert.equal(first.metadata.labels['kubernetes.io/service-name'], 'extender');
    assert.deepEqual(
      [first.endpoints.map(({ addresses }) => addresses), first.ports.map(({ name, port }) => [name, port])],
      [[['10.244.0.1']], [['https', 9443]]],
    );
    assert.ok(await publish('10.244.0.1'));
    assert.equal((await slice()).metadata.resourceVersion, first.metadata.resourceVersion, 'nothing is written');
    assert.ok(await publish('10.244.0.2', 9444));
    assert.deepEqual((await slice()).endpoints[0]?.addresses, ['10.244.0.2']);
    assert.equal((await slice()).ports[0]?.port, 9444);
  });

  it('is in the Endpoints that the API server proxies by, which are mirrored nowhere', async () => {
    const read = async () => (await api.client.get(ENDPOINTS)) as Endpoints;
    const told = ({ subsets }: Endpoints) =>
      subsets.map(({ addresses, ports }) => [
        addresses.map(({ ip }) => ip),
        ports.map(({ name, port }) => [name, port]),
      ]);
    assert.ok(await publish('10.244.0.1'));
    const first = await read();
    assert.deepEqual(told(first), [[['10.244.0.1'], [['https', 9443]]]]);
    const targetRef = { kind: 'Pod', namespace: 'default', name: 'p1' };
    assert.deepEqual(first.subsets[0]?.addresses, [{ ip: '10.244.0.1', nodeName: 'n1', targetRef }]);
    assert.equal(first.metadata.labels['endpointslice.kubernetes.io/skip-mirror'], 'true');
    assert.ok(await publish('10.244.0.1'));
    assert.equal((await read()).metadata.resourceVersion, first.metadata.resourceVersion, 'nothing is written');
    assert.ok(await publish('fd00::1', 9444));
    assert.deepEqual(told(await read()), [[['fd00::1'], [['https', 9444]]]]);
  });

  it('is there for proxies also where Endpoints cannot be written, which is said once', async () => {
    const { log, lines } = recordingLogger();
    const denied = new Proxy(api.client, {
      get: (client, name: keyof KubeClient) =>
        name === 'get'
          ? (path: string) => (path === ENDPOINTS ? Promise.reject(new Error('forbidden')) : client.get(path))
          : client[name],
    });
    const publisher = createEndpointPublisher({ client: denied, namespace: 'default', service: 'extender', log });
    for (let i = 0; i < 3; i++)
      assert.ok(await publisher.publish({ address: '10.244.0.1', port: 1, portName: 'https' }));
    assert.deepEqual((await slice()).endpoints[0]?.addresses, ['10.244.0.1']);
    assert.deepEqual(
      lines.map(({ msg }) => msg),
      ['the service leads here', 'the API server cannot proxy to the service'],
    );
  });

  it('is told anew when another pod has the address', async () => {
    const of = async (podName: string) => {
      const publisher = createEndpointPublisher({
        client: api.client,
        namespace: 'default',
        service: 'extender',
        log: silent,
      });
      assert.ok(await publisher.publish({ address: '10.0.0.9', port: 9443, portName: 'https', podName }));
      const { subsets } = (await api.client.get(ENDPOINTS)) as Endpoints;
      return [(await slice()).endpoints[0]?.targetRef?.name, subsets[0]?.addresses[0]?.targetRef?.name];
    };
    assert.deepEqual(await of('before'), ['before', 'before']);
    assert.deepEqual(await of('after'), ['after', 'after']);
  });

  it('may change its address family', async () => {
    assert.ok(await publish('10.244.0.1'));
    assert.ok(await publish('fd00::1'));
    assert.deepEqual([(await slice()).addressType, (await slice()).endpoints[0]?.addresses], ['IPv6', ['fd00::1']]);
  });

  it('is said to have failed where the API server cannot be asked', async () => {
    await api.server.stop();
    assert.equal(await publish('10.244.0.1'), false);
  });
});
