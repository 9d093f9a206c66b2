import assert from 'node:assert/strict';
import { isAlreadyExists, isConflict, isNotFound, KubeError } from '../../kube/client.ts';
import { type ApiFixture, startApi } from './api-fixture.ts';

const configMap = (name: string) => ({ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name }, data: { a: '1' } });
const PATH = '/api/v1/namespaces/default/configmaps';

describe('the Kubernetes client', () => {
  let api: ApiFixture;
  before(async () => {
    api = await startApi();
  });
  after(() => api.stop());

  it('creates, reads, replaces, patches and deletes', async () => {
    const { client } = api;
    const created = (await client.create(PATH, configMap('one'))) as { metadata: { uid: string } };
    assert.ok(created.metadata.uid);
    await client.replace(`${PATH}/one`, { ...created, data: { a: '2' } });
    await client.patch(`${PATH}/one`, 'application/merge-patch+json', { data: { b: '3' } });
    const read = (await client.get(`${PATH}/one`)) as { data: unknown };
    assert.deepEqual(read.data, { a: '2', b: '3' });
    await client.delete(`${PATH}/one`);
    await assert.rejects(client.get(`${PATH}/one`), isNotFound);
  });

  it('distinguishes an existing object from one that another client changed first', async () => {
    const { client } = api;
    const first = (await client.create(PATH, configMap('two'))) as object;
    await assert.rejects(client.create(PATH, configMap('two')), isAlreadyExists);
    await client.patch(`${PATH}/two`, 'application/merge-patch+json', { data: { a: '9' } });
    await assert.rejects(client.replace(`${PATH}/two`, first), isConflict);
  });

  it('names method, path, status and reason in errors, but not the object', async () => {
    const stranger = await api.clientWith('unknown-token');
    await assert.rejects(
      stranger.create(PATH, { ...configMap('x'), data: { password: 'hidden' } }),
      (error: unknown) => {
        assert.ok(error instanceof KubeError);
        assert.equal(error.status, 401);
        assert.match(error.message, /POST \/api\/v1\/namespaces\/default\/configmaps: 401 Unauthorized/);
        assert.doesNotMatch(error.message, /hidden/);
        return true;
      },
    );
  });
});
