import assert from 'node:assert/strict';
import { lostPlaces } from '../../../model/placement/place.ts';
import { needs, node } from './fixture.ts';

const SINGLE = { topologyManager: { policy: 'single-numa-node' } };
const owned = (podUID: string, cpus: string) => ({ podUID, container: 'compute', cpus });
/** NUMA node 0 has 2-7 free and NUMA node 1 has 8-15. If both are equally good, the kubelet takes the lower one. */
const SIX_TWO = [needs('a', 2), needs('b', 8)];

describe('lost places', () => {
  it('are those of later pods that the kubelet would refuse', () => {
    const host = node({ ...SINGLE, assignments: [owned('x', '2-7')] });
    assert.deepEqual([...lostPlaces(host, SIX_TWO, new Set())], ['b']);
  });

  it('are not those of pods that the report shows', () => {
    const host = node({ ...SINGLE, assignments: [owned('x', '2-7'), owned('b', '8-15')] });
    assert.deepEqual([...lostPlaces(host, [needs('b', 8), needs('c', 2)], new Set())], ['c']);
  });

  it('are lost with and without the ended pods', () => {
    const host = node({ ...SINGLE, assignments: [owned('x', '2-7'), owned('y', '8-11')] });
    const pods = [needs('a', 2), needs('b', 8)];
    assert.deepEqual([...lostPlaces(host, pods, new Set(['y']))], ['b']);
    assert.deepEqual([...lostPlaces(host, [needs('c', 6), ...pods], new Set(['y']))], ['b']);
    assert.deepEqual([...lostPlaces(host, [needs('c', 6), needs('a', 2)], new Set(['x', 'y']))], []);
  });

  it('are looked for among the first eight pods, and the first two on a host with more than four NUMA nodes', () => {
    const pods = [...Array.from({ length: 7 }, (_, i) => needs(`p${i}`, 2)), needs('q', 8), needs('r', 8)];
    const cellsOf = (count: number) => {
      const cores = Array.from({ length: 4 * count }, (_, core) => `${2 * core}-${2 * core + 1}`);
      const cells = Array.from({ length: count }, (_, id) => ({ id, cpus: `${8 * id}-${8 * id + 7}` }));
      return node({ ...SINGLE, cells, cores, assignments: [owned('x', `16-${8 * count - 1}`)] });
    };
    assert.deepEqual([...lostPlaces(cellsOf(4), pods, new Set())], ['q']);
    assert.deepEqual([...lostPlaces(cellsOf(5), pods.slice(5), new Set())], []);
    assert.deepEqual(
      [...lostPlaces(cellsOf(5), [needs('a', 10), needs('b', 10), needs('c', 10)], new Set())],
      ['a', 'b'],
    );
    assert.deepEqual(
      [...lostPlaces(cellsOf(4), [needs('a', 10), needs('b', 10), needs('c', 10)], new Set())],
      ['a', 'b', 'c'],
    );
  });
});
