import assert from 'node:assert/strict';
import { until } from '../../support/until.ts';
import { startCluster } from './watch-fixture.ts';

const SLICES = '/apis/resource.k8s.io/v1/resourceslices';

describe('nodes where the CPU driver of DRA assigns CPUs', () => {
  it('are those with at least one slice of that driver', async () => {
    const { api, state, end } = startCluster();
    await until('the watch', () => api.watched(SLICES));
    const send = (type: string, name: string, driver: string, nodeName?: string | null) =>
      api.push(SLICES, type, { metadata: { name, resourceVersion: '2' }, spec: { driver, nodeName } });
    const marked = () => ['n1', 'n2', 'n3'].filter((name) => state.fleet.get(name)?.draCpu).join();
    /** What is marked after all events so far: a slice of n3 comes and goes behind them. */
    const settled = async () => {
      send('ADDED', 'last', 'dra.cpu', 'n3');
      await until('the last slice', () => marked().includes('n3'));
      send('DELETED', 'last', 'dra.cpu', 'n3');
      await until('its deletion', () => !marked().includes('n3'));
      return marked();
    };
    send('ADDED', 'gpu', 'gpu.example.com', 'n2');
    send('ADDED', 'everywhere', 'dra.cpu', null);
    send('ADDED', 'nowhere', 'dra.cpu');
    send('ADDED', 'a', 'dra.cpu', 'n1');
    send('ADDED', 'b', 'dra.cpu', 'n1');
    assert.equal(await settled(), 'n1');
    send('DELETED', 'a', 'dra.cpu', 'n1');
    assert.equal(await settled(), 'n1', 'it has another slice');
    send('MODIFIED', 'b', 'dra.cpu', 'n2');
    assert.equal(await settled(), 'n2', 'the slice moved');
    send('DELETED', 'b', 'dra.cpu', 'n2');
    assert.deepEqual([await settled(), state.fleet.size], ['', 0]);
    await end();
  });
});
