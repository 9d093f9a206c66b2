import assert from 'node:assert/strict';
import { KubeError } from '../../../kube/errors.ts';
import { NODE_TOPOLOGY_API, nodeTopologyStatus } from '../../../kube/node-topology.ts';
import type { NodeIdentity } from '../../../node-agent/kube-objects/node.ts';
import { buildStatus } from '../../../node-agent/report/status.ts';
import { createTopologyStore } from '../../../node-agent/report/topology-store.ts';
import { createFakeApi } from '../api-stand-in.ts';
import { inputs } from './inputs-fixture.ts';

const COLLECTION = '/apis/plumbline.dev/v1alpha1/nodetopologies';
const PATH = `${COLLECTION}/n1`;
const IDENTITY = { name: 'n1', uid: 'node-uid' } as NodeIdentity;
const STATUS = nodeTopologyStatus.parse(buildStatus(inputs, undefined, '2026-01-01T00:00:00Z'));
const { signal } = new AbortController();

describe('the NodeTopology on the API server', () => {
  const storeOf = () => {
    const api = createFakeApi('n1');
    return { api, store: createTopologyStore(api.client, 'n1') };
  };

  it('is created for its node if it is missing, and read otherwise', async () => {
    const { api, store } = storeOf();
    await store.sync(IDENTITY, signal);
    await store.sync(IDENTITY, signal);
    assert.deepEqual(api.writes, [`POST ${COLLECTION}`]);
    const { ownerReferences } = api.objects.get(PATH)?.['metadata'] as { ownerReferences: { uid: string }[] };
    assert.deepEqual([ownerReferences.map(({ uid }) => uid), store.published], [['node-uid'], undefined]);
  });

  it('is read if another agent created it at the same moment', async () => {
    const { api, store } = storeOf();
    api.client.create = async () => {
      const { apiVersion, kind } = NODE_TOPOLOGY_API;
      api.objects.set(PATH, { apiVersion, kind, metadata: { name: 'n1' }, status: STATUS as never });
      throw new KubeError(409, 'AlreadyExists', 'it exists');
    };
    await store.sync(IDENTITY, signal);
    assert.deepEqual(store.published, STATUS);
  });

  it('reports a creation and a read that fail for another reason', async () => {
    const { api, store } = storeOf();
    api.client.create = () => Promise.reject(new KubeError(403, 'Forbidden', 'no permission'));
    await assert.rejects(store.sync(IDENTITY, signal), /no permission/);
    api.failing = true;
    await assert.rejects(store.sync(IDENTITY, signal), /down for the test/);
  });

  it('differs after a change by another writer, but not because the server keeps another value', async () => {
    const { api, store } = storeOf();
    await store.sync(IDENTITY, signal);
    assert.equal(store.differs(STATUS), true);
    const { patch } = api.client;
    api.client.patch = async (...args) => {
      const { status, ...object } = (await patch(...args)) as { status: Record<string, unknown> };
      const { reserved, ...kept } = status;
      assert.ok(reserved !== undefined);
      api.objects.set(PATH, { ...object, status: { ...kept, reserved: '' } });
      return { ...object, status: { ...kept, reserved: '' } };
    };
    await store.write(STATUS, signal);
    assert.equal(store.differs(STATUS), false, 'the server keeps no more than it did');
    await store.sync(IDENTITY, signal);
    assert.equal(store.differs(STATUS), false);
    api.objects.set(PATH, { ...api.objects.get(PATH), status: { ...STATUS, reserved: '0-7' } as never });
    await store.sync(IDENTITY, signal);
    assert.equal(store.differs(STATUS), true);
  });

  it('names the fields that the server dropped', async () => {
    const { api, store } = storeOf();
    await store.sync(IDENTITY, signal);
    assert.deepEqual(store.dropped, []);
    const { patch } = api.client;
    api.client.patch = async (...args) => {
      const { status, ...object } = (await patch(...args)) as { status: Record<string, unknown> };
      const { physnets, ...kept } = status;
      assert.ok(physnets !== undefined);
      return { ...object, status: kept };
    };
    await store.write(STATUS, signal);
    assert.deepEqual(store.dropped, ['physnets']);
  });
});
