import assert from 'node:assert/strict';
import { createResourceSliceReflector, RESOURCE_SLICES_PATH } from '../../../kube/cluster-view/resource-slices.ts';
import { silent } from '../../support/logger.ts';
import { scriptedLists, settle } from '../scripted-api-stand-in.ts';

describe('the slices of the CPU driver of DRA', () => {
  it('mark the nodes with at least one of them', async () => {
    const lists = scriptedLists({ [RESOURCE_SLICES_PATH]: [] });
    const marked = new Set<string>();
    const slices = createResourceSliceReflector(
      { client: lists.client, log: silent, nowSeconds: () => 0 },
      (node, isMarked) => (isMarked ? marked.add(node) : marked.delete(node)),
    );
    const running = new AbortController();
    void slices.run(running.signal);
    await settle();
    const send = (type: 'ADDED' | 'MODIFIED' | 'DELETED', name: string, driver: string, nodeName?: string | null) =>
      lists.send(RESOURCE_SLICES_PATH, type, { metadata: { name }, spec: { driver, nodeName } });
    await send('ADDED', 'gpu', 'gpu.example.com', 'n2');
    await send('ADDED', 'everywhere', 'dra.cpu', null);
    await send('ADDED', 'nowhere', 'dra.cpu');
    for (const name of ['a', 'b']) await send('ADDED', name, 'dra.cpu', 'n1');
    assert.deepEqual([...marked], ['n1']);
    await send('MODIFIED', 'a', 'dra.cpu', 'n1');
    await send('DELETED', 'a', 'dra.cpu', 'n1');
    assert.deepEqual([...marked], ['n1'], 'it has another slice');
    await send('MODIFIED', 'b', 'dra.cpu', 'n2');
    assert.deepEqual([...marked], ['n2'], 'the slice moved');
    await send('DELETED', 'b', 'dra.cpu', 'n2');
    assert.deepEqual([...marked], []);
    running.abort();
  });
});
