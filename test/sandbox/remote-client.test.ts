import assert from 'node:assert/strict';
import { createKubeClient, type KubeClient, KubeError } from '../../kube/client.ts';
import { PODS } from '../../sandbox/api-server/built-in-types.ts';
import { ApiError } from '../../sandbox/api-server/errors.ts';
import type { KubeObject, KubePod } from '../../sandbox/objects.ts';
import { silent } from '../support/logger.ts';
import { createRemoteClient, type RemoteClient } from '../support/remote-client.ts';
import { until } from '../support/until.ts';
import { podOf, TOKEN, useApiServer } from './support.ts';

describe('sandbox: a client of any API server', () => {
  const at = useApiServer();
  let kube: KubeClient;
  let client: RemoteClient;
  /** Runs before the client's next PUT. */
  let beforeReplace: (() => Promise<unknown>) | undefined;

  before(async () => {
    const { url, ca } = at.server;
    const headers = { authorization: `Bearer ${TOKEN}` };
    kube = createKubeClient({ server: url, requestOptions: () => ({ ca, headers }) }, 'test');
    // As virt-handler, whose account may list, watch and update VMIs but not get them.
    const withoutGet: KubeClient = {
      ...kube,
      get: async (path, options) => {
        if (/\/pods\/[^/?]+$/.test(path)) throw new KubeError(403, 'Forbidden', `cannot get ${path}`);
        return kube.get(path, options);
      },
      replace: async (path, body, options) => {
        const first = beforeReplace;
        beforeReplace = undefined;
        await first?.();
        return kube.replace(path, body, options);
      },
    };
    client = createRemoteClient({ client: withoutGet, types: [PODS], log: silent });
    await client.start();
  });
  after(async () => {
    client.close();
    await kube.close();
  });

  const create = async (name: string): Promise<KubePod> => {
    const pod = (await kube.create('/api/v1/namespaces/default/pods', podOf(name))) as KubePod;
    await until('the client to see the pod', () => client.get(PODS, 'default', name));
    return pod;
  };
  const label = (key: string) => (draft: KubeObject) => {
    draft.metadata.labels = { ...draft.metadata.labels, [key]: 'x' };
  };
  const path = (name: string) => `/api/v1/namespaces/default/pods/${name}`;

  it('changes the newer object from its watch after a conflict, without a GET', async () => {
    const pod = await create('contended');
    beforeReplace = () =>
      kube.patch(path('contended'), 'application/merge-patch+json', { metadata: { labels: { a: 'x' } } });
    const { metadata } = await client.edit(PODS, pod, label('b'));
    assert.deepEqual(metadata.labels, { a: 'x', b: 'x' });
  });

  it('reports a deleted object after a conflict with the deletion', async () => {
    const pod = await create('deleted');
    beforeReplace = async () => {
      await kube.delete(path('deleted'), { body: { gracePeriodSeconds: 0 } });
      await kube.create('/api/v1/namespaces/default/pods', podOf('deleted'));
    };
    await assert.rejects(
      client.edit(PODS, pod, label('b')),
      (error) => error instanceof ApiError && error.http === 404,
    );
  });
});
