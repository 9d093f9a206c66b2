import assert from 'node:assert/strict';
import { type EndpointObject, endpointSliceOf, endpointsOf } from '../../kube/endpoint-objects.ts';

const ENDPOINT = { address: '10.0.0.9', port: 9443, portName: 'https', nodeName: 'n1', podName: 'p1' };
const SLICE = endpointSliceOf('plumbline', 'extender');
const ENDPOINTS = endpointsOf('plumbline', 'extender');

/** An object as the API server returns it: with its own fields, and other changes. */
const returned = (object: object, changes: object = {}) => {
  const { metadata, ...rest } = object as { metadata: object };
  return { ...rest, metadata: { ...metadata, uid: 'u', resourceVersion: '7' }, ...changes };
};

describe('the objects that publish an endpoint', () => {
  it('name the Service, the address, the node and the pod', () => {
    const targetRef = { kind: 'Pod', namespace: 'plumbline', name: 'p1' };
    const ports = [{ name: 'https', port: 9443, protocol: 'TCP' }];
    assert.deepEqual(SLICE.object(ENDPOINT), {
      apiVersion: 'discovery.k8s.io/v1',
      kind: 'EndpointSlice',
      metadata: {
        name: 'extender',
        namespace: 'plumbline',
        labels: {
          'kubernetes.io/service-name': 'extender',
          'endpointslice.kubernetes.io/managed-by': 'plumbline-scheduler-plugin',
        },
      },
      addressType: 'IPv4',
      endpoints: [{ addresses: ['10.0.0.9'], conditions: { ready: true }, nodeName: 'n1', targetRef }],
      ports,
    });
    assert.deepEqual(ENDPOINTS.object(ENDPOINT), {
      apiVersion: 'v1',
      kind: 'Endpoints',
      metadata: {
        name: 'extender',
        namespace: 'plumbline',
        labels: { 'endpointslice.kubernetes.io/skip-mirror': 'true' },
      },
      subsets: [{ addresses: [{ ip: '10.0.0.9', nodeName: 'n1', targetRef }], ports }],
    });
  });

  it('name neither a node nor a pod if these are unknown', () => {
    const { nodeName: _node, podName: _pod, ...bare } = ENDPOINT;
    assert.deepEqual((SLICE.object(bare) as unknown as { endpoints: object[] }).endpoints, [
      { addresses: ['10.0.0.9'], conditions: { ready: true } },
    ]);
    assert.deepEqual(
      (ENDPOINTS.object(bare) as unknown as { subsets: { addresses: object[] }[] }).subsets[0]?.addresses,
      [{ ip: '10.0.0.9' }],
    );
  });

  it('are empty without an endpoint, and have the family of the address', () => {
    const { addressType, endpoints, ports } = SLICE.object(undefined) as unknown as Record<string, unknown>;
    assert.deepEqual([addressType, endpoints, ports], ['IPv4', [], []]);
    assert.deepEqual((ENDPOINTS.object(undefined) as unknown as { subsets: object[] }).subsets, []);
    const { addressType: family } = SLICE.object({ ...ENDPOINT, address: 'fd00::9' }) as unknown as {
      addressType: string;
    };
    assert.equal(family, 'IPv6');
  });

  for (const [kind, target, list] of [
    ['EndpointSlice', SLICE, 'endpoints'],
    ['Endpoints', ENDPOINTS, 'subsets'],
  ] as [string, EndpointObject, string][]) {
    describe(kind, () => {
      it('is the same with fields of the API server, and differs by its address', () => {
        assert.ok(target.isAs(returned(target.object(ENDPOINT)), target.object(ENDPOINT)));
        const other = target.object({ ...ENDPOINT, address: '10.0.0.8' });
        assert.ok(!target.isAs(returned(other), target.object(ENDPOINT)));
      });

      it('is empty if its list is null or missing, as Go writes an empty one', () => {
        const wanted = target.object(undefined);
        for (const empty of [null, undefined, []]) {
          const read = returned(wanted, { [list]: empty });
          assert.ok(target.isAs(read, wanted));
          assert.ok(!target.names(read, ENDPOINT));
        }
      });

      it('names an address that is one of several', () => {
        const [first, second] = ['10.0.0.8', '10.0.0.9'].map(
          (address) => (target.object({ ...ENDPOINT, address }) as unknown as Record<string, unknown[]>)[list] ?? [],
        );
        const read = returned(target.object(undefined), { [list]: [...first!, ...second!] });
        assert.ok(target.names(read, ENDPOINT));
        assert.ok(target.names(read, { ...ENDPOINT, address: '10.0.0.8' }));
        assert.ok(!target.names(read, { ...ENDPOINT, address: '10.0.0.7' }));
      });
    });
  }

  it('name an address that is one of several of one group', () => {
    const slice = returned(SLICE.object(undefined), { endpoints: [{ addresses: ['10.0.0.8', '10.0.0.9'] }] });
    assert.ok(SLICE.names(slice, ENDPOINT));
    const addresses = [{ ip: '10.0.0.8' }, { ip: '10.0.0.9' }];
    const endpoints = returned(ENDPOINTS.object(undefined), { subsets: [{ addresses }, { addresses: null }] });
    assert.ok(ENDPOINTS.names(endpoints, ENDPOINT));
  });
});
