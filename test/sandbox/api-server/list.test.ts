import assert from 'node:assert/strict';
import type { KubeObject } from '../../../sandbox/objects.ts';
import { until } from '../../support/until.ts';
import { MAPS, MERGE, watch as open, PODS, podOf, useApiServer } from '../support.ts';

const map = (name: string, labels: object = {}) => ({ metadata: { name, labels } });
type Listed = { items: { metadata: { name: string } }[] };
const namesOf = (body: unknown) => (body as Listed).items.map(({ metadata }) => metadata.name).join(' ');

describe('sandbox API server: lists', () => {
  const { call } = useApiServer();
  before(async () => {
    await call('POST', MAPS, map('a', { app: 'x', tier: '1' }));
    await call('POST', MAPS, map('b', { app: 'y' }));
    await call('POST', MAPS, map('c', { app: 'z', tier: '2' }));
    await call('POST', PODS, podOf('p1'));
    await call('POST', PODS, podOf('p2'));
    await call('POST', `${PODS}/p2/binding`, { target: { name: 'n' } });
  });

  for (const [path, selector, names] of [
    [MAPS, 'labelSelector=app notin (x,y)', 'c'],
    [MAPS, 'labelSelector=!tier', 'b'],
    [MAPS, 'labelSelector=app in (x,y),tier', 'a'],
    [MAPS, 'fieldSelector=metadata.name%3Db', 'b'],
    [PODS, 'fieldSelector=spec.nodeName%3Dn,status.phase!%3DPending', ''],
    ['/api/v1/pods', 'fieldSelector=status.phase%3DPending', 'p1 p2'],
  ] as const) {
    it(`${decodeURIComponent(selector)}: ${names || 'nothing'}`, async () => {
      const { status, body } = await call('GET', `${path}?${selector.replaceAll(' ', '%20')}`);
      assert.deepEqual([status, namesOf(body)], [200, names]);
    });
  }
  for (const [selector, message] of [
    ['fieldSelector=spec.colour%3Dred', /field label not supported: spec.colour/],
    ['labelSelector=a%3Db%3Dc', /unable to parse requirement/],
  ] as const) {
    it(`${decodeURIComponent(selector)}: 400`, async () => {
      const { status, body } = await call('GET', `${MAPS}?${selector}`);
      assert.equal(status, 400);
      assert.match(String(body.message), message);
    });
  }
});

describe('sandbox API server: pages', () => {
  const suite = useApiServer({ history: 8 });
  const { call } = suite;
  const page = async (query: string) => {
    const { status, body } = await call('GET', `${MAPS}?${query}`);
    return { status, body, next: `limit=2&continue=${String(body.metadata['continue'])}` };
  };
  before(async () => {
    for (const name of ['a', 'b', 'c', 'd', 'e'])
      await call('POST', MAPS, map(name, { odd: String('ace'.includes(name)) }));
  });

  it('all show the version of the first, and tell how many objects follow', async () => {
    const first = await page('limit=2');
    await call('DELETE', `${MAPS}/c`);
    await call('POST', MAPS, map('aa'));
    const second = await page(first.next);
    const third = await page(second.next);
    const pages = [first, second, third].map(({ body }) => [namesOf(body), body.metadata['remainingItemCount']]);
    assert.deepEqual(pages, [
      ['a b', 3],
      ['c d', 1],
      ['e', undefined],
    ]);
    assert.equal(new Set([first, second, third].map(({ body }) => body.metadata['resourceVersion'])).size, 1);
    assert.equal(namesOf((await page('limit=0')).body), 'a aa b d e');
    const selected = await page('limit=1&labelSelector=odd%3Dtrue');
    assert.deepEqual([namesOf(selected.body), selected.body.metadata['remainingItemCount']], ['a', undefined]);
    const exact = `resourceVersion=${String(first.body.metadata['resourceVersion'])}&resourceVersionMatch=Exact`;
    assert.equal(namesOf((await page(exact)).body), 'a b c d e');
    for (let i = 0; i < 9; i++) await call('POST', MAPS, { metadata: { generateName: 'x-' } });
    assert.equal((await page(first.next)).status, 410, 'its history is gone');
  });

  for (const [query, status, message] of [
    ['limit=2&continue=x', 400, /continue key is not valid/],
    ['limit=-1', 400, /limit must be a whole number/],
    ['resourceVersionMatch=Exact', 422, /forbidden unless resourceVersion is provided/],
    ['sendInitialEvents=true', 422, /sendInitialEvents is forbidden for list/],
    ['watch=1&sendInitialEvents=true', 422, /requires setting resourceVersionMatch to NotOlderThan/],
    ['watch=1&resourceVersionMatch=NotOlderThan', 422, /forbidden for watch unless sendInitialEvents/],
  ] as const) {
    it(`${query}: ${status}`, async () => {
      const { status: actual, body } = await page(query);
      assert.equal(actual, status);
      assert.match(String(body.message), message);
    });
  }
});

describe('sandbox API server: watches', () => {
  const suite = useApiServer({ bookmarkSeconds: 0.05, history: 8 });
  const { call } = suite;
  const version = async () => (await call('GET', MAPS)).body.metadata.resourceVersion;
  const watch = (query: string, path = MAPS) => open(suite.server, `${path}?watch=1&${query}`);

  it('continues from a version, in order, with the selected objects', async () => {
    const from = await version();
    await call('POST', MAPS, map('w', { on: '1' }));
    const watching = watch(`resourceVersion=${from}&labelSelector=on%3D1`);
    await until('the first event', () => watching.events.length === 1);
    for (const labels of [{ on: '2' }, { on: '1' }, { on: '1', x: '1' }]) {
      await call('PATCH', `${MAPS}/w`, { metadata: { labels } }, { type: MERGE });
    }
    await call('DELETE', `${MAPS}/w`);
    await until('all events', () => watching.events.length === 5);
    assert.equal(watching.events.map(({ type }) => type).join(), 'ADDED,DELETED,ADDED,MODIFIED,DELETED');
    const versions = watching.events.map(({ object }) => Number(object.metadata.resourceVersion));
    const ascending = versions.toSorted((a, b) => a - b);
    assert.deepEqual(versions, ascending);
    watching.close();
  });

  it('sends bookmarks with the version of the last change of the kind, even a hidden one, if allowed', async () => {
    const from = `resourceVersion=${await version()}`;
    const silent = watch(`labelSelector=on%3D1&${from}`);
    const marked = watch(`labelSelector=on%3D1&allowWatchBookmarks=true&${from}`);
    const secrets = '/api/v1/namespaces/default/secrets';
    const others = watch(`allowWatchBookmarks=true&${from}`, secrets);
    await call('POST', secrets, { metadata: { generateName: 's-' } });
    await until('bookmarks of the other kind', () => others.events.length > 2);
    others.close();
    assert.equal(marked.events.length, 0, 'nothing of this kind has changed');
    await call('POST', MAPS, map('hidden', { on: '2' }));
    const newest = suite.server.store.version;
    await until('two bookmarks', () => marked.events.length === 2);
    const versions = marked.events.map(({ type, object }) => `${type} ${object.metadata.resourceVersion}`);
    assert.deepEqual(versions, [`BOOKMARK ${newest}`, `BOOKMARK ${newest}`]);
    assert.equal(silent.events.length, 0);
    marked.close();
    silent.close();
  });

  it('begins a watch list with the objects, and ends them with one marked bookmark', async () => {
    const query = 'sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true';
    const watching = watch(`${query}&labelSelector=on%3Dlist`);
    await until('the end of no objects', () => watching.events.length === 1);
    await call('POST', MAPS, map('listed', { on: 'list' }));
    const again = watch(`${query}&labelSelector=on%3Dlist`);
    await until('the end of one object', () => again.events.length === 2);
    const marked = ({ type, object }: { type: string; object: KubeObject }) =>
      `${type} ${object.metadata.annotations?.['k8s.io/initial-events-end'] ?? ''}`;
    assert.equal(marked(watching.events[0]!), 'BOOKMARK true');
    assert.deepEqual(again.events.slice(0, 2).map(marked), ['ADDED ', 'BOOKMARK true']);
    assert.equal(again.events[1]?.object.metadata.resourceVersion, again.events[0]?.object.metadata.resourceVersion);
    watching.close();
    again.close();
  });

  it('ends cleanly after timeoutSeconds', async () => {
    const watching = watch(`timeoutSeconds=1&resourceVersion=${await version()}`);
    const begun = performance.now();
    await watching.closed;
    assert.ok(performance.now() - begun > 900);
    assert.equal(watching.events.length, 0);
  });

  for (const [what, from, code, reason] of [
    ['an expired version', '1', 410, 'Expired'],
    ['a future version', '999999', 504, 'Timeout'],
  ] as const) {
    it(`${what}: one ERROR event with ${code}, then the end`, async () => {
      for (let i = 0; i < 10; i++) await call('POST', MAPS, { metadata: { generateName: 'x-' } });
      const watching = watch(`resourceVersion=${from}`);
      await watching.closed;
      const events = watching.events.map(({ type, object }) => [type, object.code, object.reason]);
      assert.deepEqual(events, [['ERROR', code, reason]]);
    });
  }
});
