import assert from 'node:assert/strict';
import { PODS } from '../../../sandbox/api-server/built-in-types.ts';
import { applyPatch } from '../../../sandbox/api-server/patch.ts';
import type { JsonRecord, KubeObject } from '../../../sandbox/objects.ts';
import { MAPS, MERGE, TOPOLOGIES, useApiServer } from '../support.ts';

const JSON_PATCH = 'application/json-patch+json';
const STRATEGIC = 'application/strategic-merge-patch+json';
const APPLY = 'application/apply-patch+yaml';

describe('sandbox API server: patches', () => {
  const { call } = useApiServer();
  beforeEach(async () => {
    await call('DELETE', `${MAPS}/m`);
    await call('POST', MAPS, { metadata: { name: 'm' }, data: { a: '1', b: '2' } });
  });
  const patch = (type: string, body: unknown, path = `${MAPS}/m`) => call('PATCH', path, body, { type });

  it('merge patch: null removes, objects are merged', async () => {
    const { body } = await patch(MERGE, { data: { a: null, c: '3' } });
    assert.deepEqual(body.data, { b: '2', c: '3' });
  });
  it('JSON patch: all or nothing', async () => {
    const operations = [
      { op: 'replace', path: '/data/a', value: '9' },
      { op: 'test', path: '/data/b', value: 'other' },
    ];
    const { status, body } = await patch(JSON_PATCH, operations);
    assert.deepEqual([status, body.reason], [422, 'Invalid']);
    assert.deepEqual((await call('GET', `${MAPS}/m`)).body.data, { a: '1', b: '2' });
  });

  const refused: [string, string, unknown, number][] = [
    ['a JSON patch that is not a list', JSON_PATCH, { a: 1 }, 400],
    ['an old resourceVersion', MERGE, { metadata: { resourceVersion: '1' } }, 409],
    ['an unknown format', 'application/json', {}, 415],
    ['server-side apply without a manager', APPLY, 'apiVersion: v1\nkind: ConfigMap\n', 400],
  ];
  for (const [what, type, body, status] of refused) {
    it(`${what}: ${status}`, async () => {
      assert.equal((await patch(type, body)).status, status);
    });
  }
  it('a custom resource accepts no strategic merge patch', async () => {
    await call('POST', TOPOLOGIES, { metadata: { name: 'n' } });
    assert.equal((await patch(STRATEGIC, { spec: { a: 1 } }, `${TOPOLOGIES}/n`)).status, 415);
    assert.equal((await patch(MERGE, { status: { reserved: '0' } }, `${TOPOLOGIES}/n/status`)).status, 200);
  });
  it('concurrent patches all succeed', async () => {
    const writes = Array.from({ length: 8 }, (_, i) => patch(MERGE, { data: { [`k${i}`]: 'x' } }));
    for (const { status } of await Promise.all(writes)) assert.equal(status, 200);
    const { body } = await call('GET', `${MAPS}/m`);
    assert.equal(Object.keys(body.data as object).length, 10);
  });
});

describe('strategic merge patch', () => {
  const merged = (target: JsonRecord, patch: JsonRecord) =>
    applyPatch(PODS, target as unknown as KubeObject, STRATEGIC, patch);

  it('replaces lists without a key, and merges, adds and deletes items of lists with one', () => {
    const target = { args: ['a'], env: [{ name: 'a', x: 1 }, { name: 'b' }] };
    const before = structuredClone(target);
    const patch = { args: ['c'], env: [{ name: 'a', y: 2 }, { name: 'b', $patch: 'delete' }, { name: 'd' }] };
    assert.deepEqual(merged(target, patch), { args: ['c'], env: [{ name: 'a', x: 1, y: 2 }, { name: 'd' }] });
    assert.deepEqual(target, before);
  });
  for (const [what, patch, message] of [
    ['an unknown directive', { $patch: 'explode' }, /unknown patch directive: explode/],
    ['an item without its key', { env: [{ value: 'x' }] }, /does not contain declared merge key: name/],
  ] as const) {
    it(`refuses ${what}`, () => assert.throws(() => merged({}, patch as JsonRecord), message));
  }
});
