import assert from 'node:assert/strict';
import { KubeError, type RequestOptions } from '../../kube/client.ts';
import { pagesOf } from '../../kube/list-pages.ts';

type PagesOptions = Parameters<typeof pagesOf>[0];

const MIB = 1024 * 1024;
/** A list of objects with these sizes, which answers like the API server and records all requests. */
function listOf(sizes: readonly number[]) {
  const requests: { limit: number; from: number; largest: number }[] = [];
  const get = async (_path: string, { query = {}, largest = 0 }: RequestOptions = {}) => {
    const [limit, from] = [Number(query['limit']), Number(query['continue'] ?? 0)];
    requests.push({ limit, from, largest });
    const items = sizes.slice(from, from + limit);
    if (items.reduce((sum, size) => sum + size, 0) > largest) throw new KubeError(0, 'TooLarge', 'too large');
    const next = from + limit < sizes.length ? String(from + limit) : '';
    return { metadata: { resourceVersion: '7', continue: next }, items };
  };
  return { client: { get } as PagesOptions['client'], requests };
}
const listAll = async (client: PagesOptions['client'], page: number, more: Partial<PagesOptions> = {}) => {
  const all: unknown[] = [];
  for await (const { items } of pagesOf({ client, path: '/x', page, ...more })) all.push(...(items ?? []));
  return all;
};
describe('the pages of a list', () => {
  it('shrink to a quarter if one is too large, and grow again to half of it, later to all of it', async () => {
    const { client, requests } = listOf([...Array(16).fill(MIB / 4), ...Array(100).fill(1)]);
    assert.equal((await listAll(client, 16)).length, 116);
    const limits = requests.map(({ limit }) => limit);
    assert.deepEqual(limits.slice(0, 5), [16, 4, 8, 8, 8]);
    assert.equal(Math.max(...limits.slice(1)), 16);
    assert.equal(limits.indexOf(16, 1), 5, `${limits}`);
  });

  it('may have 16 MiB with one object, otherwise 2 MiB', async () => {
    const { client, requests } = listOf([15 * MIB, 1]);
    assert.deepEqual(await listAll(client, 4), [15 * MIB, 1]);
    const limits = requests.slice(0, 2).map(({ limit, largest }) => `${limit}: ${largest / MIB} MiB`);
    assert.deepEqual(limits, ['4: 2 MiB', '1: 16 MiB']);
  });

  it('fail for one object above 16 MiB, without a retry', async () => {
    const { client, requests } = listOf([17 * MIB]);
    await assert.rejects(listAll(client, 4), { reason: 'TooLarge' });
    const limits = requests.map(({ limit }) => limit);
    assert.deepEqual(limits, [4, 1]);
  });

  it('fail at once for any other error', async () => {
    let calls = 0;
    const get = async () => {
      calls++;
      throw new KubeError(403, 'Forbidden', 'no');
    };
    await assert.rejects(listAll({ get }, 4), { reason: 'Forbidden' });
    assert.equal(calls, 1);
  });

  it('are requested with the query, the signal and the timeout of the caller', async () => {
    const requests: unknown[] = [];
    const { signal } = new AbortController();
    const get = async (path: string, options: RequestOptions = {}) => {
      requests.push([path, options]);
      return { metadata: { resourceVersion: '7' }, items: null };
    };
    await listAll({ get }, 10, { query: { labelSelector: 'a=b' }, signal, timeout: 7 });
    const query = { labelSelector: 'a=b', limit: 10, continue: undefined };
    assert.deepEqual(requests, [['/x', { signal, largest: 2 * MIB, timeout: 7, query }]]);
  });

  it('have at least one object, and shrink again if they grew too far, then for twice as many pages', async () => {
    const { client, requests } = listOf([...Array(4).fill(MIB * 1.5), ...Array(12).fill(1)]);
    assert.equal((await listAll(client, 3)).length, 16);
    const limits = requests.map(({ limit }) => limit);
    assert.deepEqual(limits, [3, 1, 2, 1, 1, 1, 1, 1, 1, 1, 1, 2, 2, 2, 2]);
  });
});
