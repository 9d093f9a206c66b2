import assert from 'node:assert/strict';
import { createNodeLabels } from '../../../scheduler-plugin/cluster/node-labels.ts';
import { type ApiFixture, startApi } from '../../kube/api-fixture.ts';
import { eventually } from '../../support/eventually.ts';
import { silent } from '../../support/logger.ts';

const NODES = '/api/v1/nodes';
const MERGE = 'application/merge-patch+json';

describe('the labels of nodes', () => {
  let api: ApiFixture;
  beforeEach(async () => {
    api = await startApi();
  });
  afterEach(() => api.stop());

  const add = (name: string, labels?: object) =>
    api.client.create(NODES, { apiVersion: 'v1', kind: 'Node', metadata: { name, ...(labels && { labels }) } });
  const setUp = () => {
    let lists = 0;
    const client = {
      ...api.client,
      get: (...call: Parameters<typeof api.client.get>) => {
        lists++;
        return api.client.get(...call);
      },
    };
    const labels = createNodeLabels({ client, log: silent, now: () => performance.now() / 1000 });
    const ending = new AbortController();
    const running = labels.run(ending.signal);
    const end = () => {
      ending.abort();
      return running;
    };
    return { labels, end, lists: () => lists };
  };

  it('are not watched before they are needed', async () => {
    await add('n1', { size: 'l' });
    const { labels, end, lists } = setUp();
    await new Promise((resolve) => setImmediate(resolve));
    assert.deepEqual([labels.settled, labels.of('n1', 'size'), labels.changes, lists()], [true, undefined, 0, 0]);
    await end();
    assert.equal(lists(), 0);
  });

  it('are known after they are needed, and each change counts', async () => {
    await add('n1', { size: 'l' });
    const { labels, end } = setUp();
    labels.need();
    assert.equal(labels.settled, false);
    await eventually(() => labels.settled, 'the labels');
    assert.deepEqual(
      [labels.of('n1', 'size'), labels.of('n1', 'other'), labels.of('n2', 'size')],
      ['l', undefined, undefined],
    );
    assert.equal(labels.changes, 1);
    await add('n2');
    await eventually(() => labels.changes === 2, 'another node');
    await api.client.patch(`${NODES}/n1`, MERGE, { metadata: { labels: { size: 's' } } });
    await eventually(() => labels.of('n1', 'size') === 's', 'the change');
    assert.equal(labels.changes, 3);
    await api.client.patch(`${NODES}/n1/status`, MERGE, { status: { capacity: { cpu: '4' } } });
    await add('n3', { last: 'a' });
    await eventually(() => labels.of('n3', 'last') === 'a', 'a node after the status');
    assert.equal(labels.changes, 4, 'a status is no change of labels');
    await api.client.delete(`${NODES}/n3`);
    await add('n4', { last: 'b' });
    await eventually(() => labels.of('n4', 'last') === 'b', 'a node after the deletion');
    assert.deepEqual([labels.changes, labels.of('n3', 'last')], [6, undefined]);
    await end();
  });
});
