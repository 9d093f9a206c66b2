import assert from 'node:assert/strict';
import { createEndpointPublisher } from '../../kube/endpoint-slice.ts';
import { silent } from '../support/logger.ts';
import { type ApiFixture, startApi } from './api-fixture.ts';

const PATH = '/apis/discovery.k8s.io/v1/namespaces/default/endpointslices/extender';

interface Slice {
  readonly metadata: { readonly resourceVersion: string; readonly labels: Readonly<Record<string, string>> };
  readonly addressType: string;
  readonly endpoints: readonly { readonly addresses: readonly string[] }[];
  readonly ports: readonly { readonly name: string; readonly port: number }[];
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
    }).publish({ address, port, portName: 'https', nodeName: 'n1' });
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
