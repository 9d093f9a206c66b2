import assert from 'node:assert/strict';
import { until } from '../../support/until.ts';
import { MAPS, MERGE, PODS, podOf, useApiServer } from '../support.ts';

describe('sandbox API server: binding, eviction and graceful deletion', () => {
  const { call, exists } = useApiServer();
  const make = async (name: string) => (await call('POST', PODS, podOf(name))).body;
  const bind = (name: string, target: object, metadata = {}) =>
    call('POST', `${PODS}/${name}/binding`, { target, metadata });

  it('a binding sets the node once', async () => {
    await make('b');
    assert.equal((await bind('b', { kind: 'Node', name: 'n1' })).status, 201);
    const { body } = await call('GET', `${PODS}/b`);
    assert.equal((body.spec as { nodeName: string }).nodeName, 'n1');
    const again = await bind('b', { kind: 'Node', name: 'n2' });
    assert.deepEqual([again.status, again.body.reason], [409, 'Conflict']);
    assert.match(String(again.body.message), /pod b is already assigned to node "n1"/);
  });
  it('a binding with another uid, without a target or without a pod is refused', async () => {
    await make('b2');
    assert.equal((await bind('b2', { name: 'n' }, { uid: 'other' })).status, 409);
    assert.equal((await bind('b2', {})).status, 400);
    assert.equal((await bind('b3', { name: 'n' })).status, 404);
  });
  it('a pod on a node is marked, and deleted by its kubelet', async () => {
    await make('g');
    await bind('g', { name: 'n1' });
    const { body } = await call('DELETE', `${PODS}/g?gracePeriodSeconds=7`);
    assert.equal(body.metadata.deletionGracePeriodSeconds, 7);
    assert.ok(body.metadata.deletionTimestamp);
    assert.equal(await exists(`${PODS}/g`), true);
    assert.equal((await bind('g', { name: 'n1' })).status, 409);
    await call('DELETE', `${PODS}/g`, { gracePeriodSeconds: 0 });
    assert.equal(await exists(`${PODS}/g`), false);
  });

  it('a deletion and an eviction with another uid or version: 409; an eviction with the right uid deletes', async () => {
    const { metadata } = await make('e');
    const evict = (preconditions: object) =>
      call('POST', `${PODS}/e/eviction`, { deleteOptions: { preconditions } }).then(({ status }) => status);
    assert.equal((await call('DELETE', `${PODS}/e`, { preconditions: { resourceVersion: '1' } })).status, 409);
    assert.equal(await evict({ uid: 'other' }), 409);
    assert.equal(await exists(`${PODS}/e`), true);
    assert.equal(await evict({ uid: metadata.uid }), 201);
    assert.equal(await exists(`${PODS}/e`), false);
  });
});

describe('sandbox API server: dependent objects', () => {
  const { call, exists } = useApiServer();

  it('an object is kept until its last finalizer is removed', async () => {
    await call('POST', MAPS, { metadata: { name: 'held', finalizers: ['x.dev/a'] } });
    const { body } = await call('DELETE', `${MAPS}/held`);
    assert.ok(body.metadata.deletionTimestamp);
    assert.equal(await exists(`${MAPS}/held`), true);
    await call('PATCH', `${MAPS}/held`, { metadata: { finalizers: null } }, { type: MERGE });
    assert.equal(await exists(`${MAPS}/held`), false);
  });

  it('a dependent is deleted with its owner, unless it has another owner', async () => {
    const owner = async (name: string) => {
      const { body } = await call('POST', MAPS, { metadata: { name } });
      return { apiVersion: 'v1', kind: 'ConfigMap', name, uid: body.metadata.uid };
    };
    const [first, second] = [await owner('o1'), await owner('o2')];
    await call('POST', MAPS, { metadata: { name: 'one', ownerReferences: [first] } });
    await call('POST', MAPS, { metadata: { name: 'two', ownerReferences: [first, second] } });
    await call('DELETE', `${MAPS}/o1`);
    await until('the dependent is collected', async () => !(await exists(`${MAPS}/one`)));
    assert.equal(await exists(`${MAPS}/two`), true);
  });

  it('all objects of a namespace are deleted with it', async () => {
    await call('POST', '/api/v1/namespaces', { metadata: { name: 'ns' } });
    await call('POST', '/api/v1/namespaces/ns/configmaps', { metadata: { name: 'in' } });
    await call('DELETE', '/api/v1/namespaces/ns');
    assert.equal(await exists('/api/v1/namespaces/ns/configmaps/in'), false);
  });
});
