import assert from 'node:assert/strict';
import fc from 'fast-check';
import type { KubeClient } from '../../../kube/client.ts';
import type { NodeIdentity } from '../../../node-agent/kube-objects/lease.ts';
import { buildStatus } from '../../../node-agent/report/status.ts';
import { createMergePatch, createTopologyStore, type PatchValue } from '../../../node-agent/report/topology-store.ts';
import { createFakeApi, type FakeApi, mergePatched } from '../api-stand-in.ts';
import { inputs } from './inputs-fixture.ts';

const NODE = 'worker-1';
const COLLECTION = '/apis/plumbline.dev/v1alpha1/nodetopologies';
const PATH = `${COLLECTION}/${NODE}`;
const identity: NodeIdentity = {
  name: NODE,
  uid: 'node-uid-1',
  kubeletVersion: 'v1.36.0',
  maxPods: 110,
  capacity: {},
  allocatable: {},
  labels: {},
};

describe('the node’s NodeTopology on the API server', () => {
  const { signal } = new AbortController();
  const status = buildStatus(inputs, undefined, '2026-01-01T00:00:00Z')!;
  let api: FakeApi;
  let client: KubeClient;

  beforeEach(() => {
    api = createFakeApi(NODE);
    client = { ...api.client };
  });

  it('is read if another client creates it at the same time', async () => {
    const { create } = client;
    client.create = (...args) => {
      const { apiVersion, kind } = args[1] as { apiVersion: string; kind: string };
      api.objects.set(PATH, { apiVersion, kind, metadata: { name: NODE }, status: structuredClone(status) });
      return create(...args);
    };
    const store = createTopologyStore(client, NODE);
    await store.sync(identity, signal);
    assert.equal(store.published?.reserved, status.reserved);
    assert.equal(store.changesTo(status).length > 0, false);
  });

  it('is written until it has the status, which another writer may have changed', async () => {
    const store = createTopologyStore(client, NODE);
    await store.sync(identity, signal);
    assert.equal(store.changesTo(status).length > 0, true);
    await store.write(status, signal);
    assert.deepEqual([store.changesTo(status).length > 0, store.dropped], [false, []]);
    await store.sync(identity, signal);
    assert.equal(store.changesTo(status).length > 0, false);
    const stored = api.objects.get(PATH) as { status: { reserved: string } };
    stored.status.reserved = '3';
    await store.sync(identity, signal);
    assert.equal(store.changesTo(status).length > 0, true);
  });
});

describe('the changes of a report', () => {
  it('merge patches turn the old value into the new one, and are omitted for equal values', () => {
    const json = fc.letrec<{ value: PatchValue; object: Record<string, PatchValue> }>((tie) => ({
      value: fc.oneof(fc.string(), fc.integer(), fc.array(fc.string(), { maxLength: 2 }), tie('object')),
      object: fc.dictionary(fc.constantFrom('a', 'b', 'c'), tie('value'), { maxKeys: 3, noNullPrototype: true }),
    })).object;
    fc.assert(
      fc.property(json, json, (from, to) => {
        const patch = createMergePatch(from, to);
        assert.deepEqual(patch === undefined ? from : mergePatched(from, patch), to);
        assert.equal(createMergePatch(to, to), undefined);
      }),
    );
  });
});
