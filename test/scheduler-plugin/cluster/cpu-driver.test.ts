import assert from 'node:assert/strict';
import { Cluster } from '../../../scheduler-plugin/cluster/cluster.ts';
import { NeedsReader } from '../../../scheduler-plugin/cluster/pod-needs.ts';
import { silent } from '../../support/logger.ts';
import { until } from '../../support/until.ts';
import { extenderOf, statusOf } from '../extender-fixture.ts';
import { createApi } from './watch-fixture.ts';

const SLICES = '/apis/resource.k8s.io/v1/resourceslices';
const NODES = ['n1', 'n2', 'n3'];

describe('nodes where the CPU driver of DRA assigns CPUs', () => {
  it('are those with at least one slice of that driver', async () => {
    const api = createApi();
    const { state } = extenderOf({ nodes: Object.fromEntries(NODES.map((name) => [name, statusOf()])) });
    const cluster = new Cluster({
      client: api.client,
      state,
      reader: new NeedsReader('all'),
      dpuLeaseNamespace: 'ovn-kubernetes',
      log: silent,
      now: () => 0,
    });
    const ending = new AbortController();
    const running = cluster.run(ending.signal);
    await until('the watch', () => api.watched(SLICES));
    const send = (type: string, name: string, driver: string, nodeName?: string | null) =>
      api.push(SLICES, type, { metadata: { name, resourceVersion: '2' }, spec: { driver, nodeName } });
    const marked = () => NODES.filter((name) => state.fleet.get(name)?.draCpu).join();
    /** What is marked after all events so far: a slice of n3 comes and goes behind them. */
    const settled = async () => {
      send('ADDED', 'last', 'dra.cpu', 'n3');
      await until('the last slice', () => marked().includes('n3'));
      send('DELETED', 'last', 'dra.cpu', 'n3');
      await until('its deletion', () => !marked().includes('n3'));
      return marked();
    };
    assert.equal(await settled(), '');
    send('ADDED', 'gpu', 'gpu.example.com', 'n2');
    send('ADDED', 'everywhere', 'dra.cpu', null);
    send('ADDED', 'nowhere', 'dra.cpu');
    send('ADDED', 'a', 'dra.cpu', 'n1');
    send('ADDED', 'b', 'dra.cpu', 'n1');
    assert.deepEqual([await settled(), state.fleet.size], ['n1', 3]);
    send('DELETED', 'a', 'dra.cpu', 'n1');
    assert.equal(await settled(), 'n1', 'it has another slice');
    send('MODIFIED', 'b', 'dra.cpu', 'n2');
    assert.equal(await settled(), 'n2', 'the slice moved');
    send('DELETED', 'b', 'dra.cpu', 'n2');
    assert.equal(await settled(), '');
    ending.abort();
    await running;
  });
});
