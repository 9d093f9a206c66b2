import assert from 'node:assert/strict';
import type { KubeClient } from '../../kube/client.ts';
import { KubeError } from '../../kube/errors.ts';
import { createEndpointPublisher } from '../../kube/service-endpoint.ts';
import { recordingLogger, silent } from '../support/logger.ts';
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

  const publisher = () =>
    createEndpointPublisher({ client: api.client, namespace: 'default', service: 'extender', log: silent });
  const endpointAt = (address: string, port = 9443) => ({
    address,
    port,
    portName: 'https',
    nodeName: 'n1',
    podName: 'p1',
  });
  const publish = (address: string, port = 9443) => publisher().publish(endpointAt(address, port));
  const slice = async () => (await api.client.get(PATH)) as Slice;

  it('is created, kept while it is correct, and replaced by the next one', async () => {
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

  it('is in the Endpoints that the API server uses for proxies, which are not mirrored', async () => {
    const read = async () => (await api.client.get(ENDPOINTS)) as Endpoints;
    const notified = ({ subsets }: Endpoints) =>
      subsets.map(({ addresses, ports }) => [
        addresses.map(({ ip }) => ip),
        ports.map(({ name, port }) => [name, port]),
      ]);
    assert.ok(await publish('10.244.0.1'));
    const first = await read();
    assert.deepEqual(notified(first), [[['10.244.0.1'], [['https', 9443]]]]);
    const targetRef = { kind: 'Pod', namespace: 'default', name: 'p1' };
    assert.deepEqual(first.subsets[0]?.addresses, [{ ip: '10.244.0.1', nodeName: 'n1', targetRef }]);
    assert.equal(first.metadata.labels['endpointslice.kubernetes.io/skip-mirror'], 'true');
    assert.ok(await publish('10.244.0.1'));
    assert.equal((await read()).metadata.resourceVersion, first.metadata.resourceVersion, 'nothing is written');
    assert.ok(await publish('fd00::1', 9444));
    assert.deepEqual(notified(await read()), [[['fd00::1'], [['https', 9444]]]]);
  });

  it('serves proxies even if Endpoints cannot be written, and logs that once', async () => {
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
      ['service endpoint published', 'the API server cannot proxy to the service'],
    );
  });

  it('is replaced when another pod has the address', async () => {
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

  const read = async (path: string) => (await api.client.get(path)) as Record<string, unknown>;
  /** The content of the object, without fields that the API server counts. */
  const contentOf = async (path: string) => {
    const { metadata, ...rest } = (await read(path)) as { metadata: { labels?: object } };
    return { ...rest, labels: metadata.labels };
  };
  const CHANGES: Readonly<Record<string, readonly [path: string, patch: object]>> = {
    'readiness of the slice': [
      PATH,
      { endpoints: [{ addresses: ['10.0.0.9'], conditions: { ready: false }, nodeName: 'n1' }] },
    ],
    'a condition that kube-proxy uses': [
      PATH,
      { endpoints: [{ addresses: ['10.0.0.9'], conditions: { ready: true, terminating: true } }] },
    ],
    'the Service that the slice belongs to': [
      PATH,
      { metadata: { labels: { 'kubernetes.io/service-name': 'another-service' } } },
    ],
    'a label by which kube-proxy ignores a slice': [
      PATH,
      { metadata: { labels: { 'service.kubernetes.io/headless': '' } } },
    ],
    'the name of the port of the slice': [PATH, { ports: [{ name: 'http', port: 9443, protocol: 'TCP' }] }],
    'the protocol of the slice': [PATH, { ports: [{ name: 'https', port: 9443, protocol: 'UDP' }] }],
    'readiness of the Endpoints': [
      ENDPOINTS,
      { subsets: [{ notReadyAddresses: [{ ip: '10.0.0.9' }], ports: [{ name: 'https', port: 9443 }] }] },
    ],
    'the label against mirroring': [
      ENDPOINTS,
      { metadata: { labels: { 'endpointslice.kubernetes.io/skip-mirror': null } } },
    ],
  };
  for (const [what, [path, patch]] of Object.entries(CHANGES)) {
    it(`is repaired after a change of ${what}`, async () => {
      assert.ok(await publish('10.0.0.9'));
      const before = await contentOf(path);
      await api.client.patch(path, 'application/merge-patch+json', patch);
      assert.notDeepEqual(await contentOf(path), before);
      assert.ok(await publish('10.0.0.9'));
      assert.deepEqual(await contentOf(path), before);
    });
  }

  it('is withdrawn, but not if another replica has published its own', async () => {
    assert.ok(await publish('10.0.0.9'));
    await publisher().withdraw(endpointAt('10.0.0.8'));
    assert.deepEqual((await slice()).endpoints[0]?.addresses, ['10.0.0.9']);
    await publisher().withdraw(endpointAt('10.0.0.9'));
    const { subsets } = (await read(ENDPOINTS)) as { subsets?: readonly object[] };
    assert.deepEqual([(await slice()).endpoints, subsets ?? []], [[], []]);
    assert.ok(await publish('fd00::1'));
    await publisher().withdraw(endpointAt('fd00::1'));
    assert.deepEqual([(await slice()).addressType, (await slice()).endpoints], ['IPv6', []]);
  });

  it('is not withdrawn from a replica that publishes itself at the same time', async () => {
    assert.ok(await publish('10.0.0.9'));
    let other: Promise<boolean> | undefined;
    const interrupted = new Proxy(api.client, {
      get: (client, name: keyof KubeClient) =>
        name === 'get'
          ? async (path: string) => {
              const found = await client.get(path);
              other ??= publish('10.0.0.10');
              await other;
              return found;
            }
          : client[name],
    });
    const { log, lines } = recordingLogger();
    const late = createEndpointPublisher({ client: interrupted, namespace: 'default', service: 'extender', log });
    await late.withdraw(endpointAt('10.0.0.9'));
    assert.deepEqual([(await slice()).endpoints[0]?.addresses, lines], [['10.0.0.10'], []]);
  });

  const uidOf = async (path: string) => ((await read(path))['metadata'] as { uid: string }).uid;

  it('is the same object with each address of a family', async () => {
    assert.ok(await publish('10.244.0.1'));
    const before = await Promise.all([PATH, ENDPOINTS].map(uidOf));
    assert.ok(await publish('10.244.0.2'));
    assert.deepEqual(await Promise.all([PATH, ENDPOINTS].map(uidOf)), before);
  });

  it('may change its address family, for which the slice is created again', async () => {
    assert.ok(await publish('10.244.0.1'));
    const [slice0, endpoints0] = await Promise.all([PATH, ENDPOINTS].map(uidOf));
    assert.ok(await publish('fd00::1'));
    assert.notEqual(await uidOf(PATH), slice0);
    assert.equal(await uidOf(ENDPOINTS), endpoints0, 'Endpoints have no family');
    assert.deepEqual([(await slice()).addressType, (await slice()).endpoints[0]?.addresses], ['IPv6', ['fd00::1']]);
  });

  /** A publisher whose writes to one of the two objects fail with an error, and its log. */
  const failing = (collection: string, error: () => Error | undefined) => {
    const { log, lines } = recordingLogger();
    const client = new Proxy(api.client, {
      get: (from, name: keyof KubeClient) =>
        name === 'create' || name === 'replace'
          ? (path: string, body: object) => {
              const failure = path.split('/').includes(collection) ? error() : undefined;
              return failure === undefined ? from[name](path, body) : Promise.reject(failure);
            }
          : from[name],
    });
    return { publisher: createEndpointPublisher({ client, namespace: 'default', service: 'extender', log }), lines };
  };
  const conflict = () => new KubeError(409, 'Conflict', 'changed meanwhile');

  it('is not published after a conflict over the slice, which is not an error', async () => {
    const { publisher: one, lines } = failing('endpointslices', conflict);
    assert.equal(await one.publish(endpointAt('10.244.0.1')), false);
    assert.deepEqual(lines, []);
  });

  it('is published for proxies after a conflict over the Endpoints, which is not an error either', async () => {
    const { publisher: one, lines } = failing('endpoints', conflict);
    assert.equal(await one.publish(endpointAt('10.244.0.1')), true);
    assert.deepEqual(
      lines.map(({ msg }) => msg),
      ['service endpoint published'],
    );
  });

  it('warns once for each time that the Endpoints become unwritable', async () => {
    let broken = true;
    const { publisher: one, lines } = failing('endpoints', () => (broken ? new Error('forbidden') : undefined));
    const warnings = () => lines.filter(({ msg }) => msg === 'the API server cannot proxy to the service').length;
    for (let i = 0; i < 2; i++) assert.ok(await one.publish(endpointAt('10.244.0.1')));
    assert.equal(warnings(), 1);
    broken = false;
    assert.ok(await one.publish(endpointAt('10.244.0.1')));
    broken = true;
    for (let i = 0; i < 2; i++) assert.ok(await one.publish(endpointAt('10.244.0.2')));
    assert.equal(warnings(), 2);
  });

  it('reports and logs a failure if the API server cannot be reached', async () => {
    await api.server.stop();
    const { log, lines } = recordingLogger();
    const one = createEndpointPublisher({ client: api.client, namespace: 'default', service: 'extender', log });
    assert.equal(await one.publish(endpointAt('10.244.0.1')), false);
    await one.withdraw(endpointAt('10.244.0.1'));
    assert.deepEqual(
      lines.map(({ msg }) => msg),
      [
        'publishing the service endpoint failed',
        'withdrawing the service endpoint failed',
        'withdrawing the service endpoint failed',
      ],
    );
  });

  it('is withdrawn within 2 s for each request, because the process is about to end', async () => {
    const timeouts: unknown[] = [];
    const client = new Proxy(api.client, {
      get: (from, name: keyof KubeClient) =>
        name === 'get' || name === 'replace'
          ? (...given: [string, object, object]) => {
              timeouts.push((given.at(-1) as { timeout?: number }).timeout);
              return from[name](...given);
            }
          : from[name],
    });
    const one = createEndpointPublisher({ client, namespace: 'default', service: 'extender', log: silent });
    assert.ok(await one.publish(endpointAt('10.0.0.9')));
    assert.deepEqual(timeouts.splice(0), [undefined, undefined]);
    await one.withdraw(endpointAt('10.0.0.9'));
    assert.deepEqual(timeouts, [2, 2, 2, 2]);
  });

  it('is not withdrawn where nothing is published', async () => {
    const { log, lines } = recordingLogger();
    const one = createEndpointPublisher({ client: api.client, namespace: 'default', service: 'extender', log });
    await one.withdraw(endpointAt('10.0.0.9'));
    assert.deepEqual(lines, []);
    await assert.rejects(api.client.get(PATH), { status: 404 });
  });
});
