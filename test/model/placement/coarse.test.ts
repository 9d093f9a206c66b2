import assert from 'node:assert/strict';
import fc from 'fast-check';
import { CpuSet } from '../../../model/cpu-set.ts';
import { CoarseFit, coarseNeedOf, NO_FIT } from '../../../model/placement/coarse.ts';
import { place } from '../../../model/placement/place.ts';
import { hostOf, policies, shapes } from '../kubelet/arbitraries.ts';
import { simpleHost } from '../kubelet/fixture.ts';
import { needs, node, physnet } from './fixture.ts';

function fitOf(coarse: CoarseFit, cpus: number, networks: readonly string[] = [], wholeCores = true): number[] {
  const out = new Int16Array(coarse.size);
  coarse.fit({ cpus, wholeCores, networks }, out);
  return [...out];
}

describe('model/placement: coarse fit over many hosts', () => {
  it('counts whole free cores, not free threads', () => {
    const coarse = new CoarseFit();
    coarse.add(simpleHost(2, 8), CpuSet.parse('1,3,5,7,8-11'));
    assert.deepEqual(fitOf(coarse, 4), [0]);
    assert.deepEqual(fitOf(coarse, 6), [NO_FIT]);
    assert.deepEqual(fitOf(coarse, 6, [], false), [2]);
  });

  it('counts only the NUMA nodes of the required networks', () => {
    const coarse = new CoarseFit();
    const first = coarse.add(simpleHost(2, 8), CpuSet.parse('2-7,10-13'));
    const second = coarse.add(simpleHost(2, 8), CpuSet.parse('2-15'));
    coarse.setNetwork(first, 'east', 0b10);
    coarse.setNetwork(second, 'east', 0b10);
    assert.deepEqual(fitOf(coarse, 6, ['east']), [NO_FIT, 2]);
    assert.deepEqual(fitOf(coarse, 6, ['unknown']), [4, 8], 'an unknown network constrains nothing');
  });

  it('writes no more than its hosts, and returns the number of those that fit', () => {
    const coarse = new CoarseFit();
    for (const free of ['0-7', '0-1']) coarse.add(simpleHost(1, 8), CpuSet.parse(free));
    const out = new Int16Array(3).fill(7);
    assert.equal(coarse.fit({ cpus: 4, wholeCores: true, networks: [] }, out), 1);
    assert.deepEqual([...out], [4, NO_FIT, 7]);
  });

  it('follows changes of one host without affecting another', () => {
    const coarse = new CoarseFit();
    const hosts = [0, 1, 2].map(() => coarse.add(simpleHost(1, 8), CpuSet.parse('0-7')));
    coarse.setFree(hosts[1] ?? -1, CpuSet.parse('0-1'));
    assert.deepEqual(fitOf(coarse, 4), [4, NO_FIT, 4]);
  });

  it('matches a count over sets on random hosts', () => {
    const item = fc.record({ shape: shapes(64), bits: fc.array(fc.integer(), { minLength: 2, maxLength: 2 }) });
    fc.assert(
      fc.property(
        fc.array(item, { minLength: 1, maxLength: 8 }),
        fc.integer({ min: 1, max: 32 }),
        fc.boolean(),
        (items, cpus, wholeCores) => {
          const coarse = new CoarseFit();
          const expected = items.map(({ shape, bits }) => {
            const host = hostOf(shape);
            const free = CpuSet.fromWords(Uint32Array.from(bits)).intersect(host.online);
            coarse.add(host, free);
            const room = wholeCores
              ? host.cores.filter((core) => core.isSubsetOf(free)).reduce((sum, core) => sum + core.size, 0)
              : free.size;
            return room >= cpus ? room - cpus : NO_FIT;
          });
          assert.deepEqual(fitOf(coarse, cpus, [], wholeCores), expected);
        },
      ),
      { numRuns: 500 },
    );
  });

  it('never excludes a host that the exact prediction admits', () => {
    const wishes = fc.uniqueArray(fc.constantFrom('east', 'west', 'bond', 'vague', 'ghost'), { maxLength: 2 });
    const cases = fc.record({
      busy: fc.nat(0xffff),
      fullPcpusOnly: fc.boolean(),
      policy: policies,
      cpus: fc.integer({ min: 1, max: 14 }),
      init: fc.nat(14),
      wishes,
      wholeCores: fc.boolean(),
      spansCells: fc.boolean(),
    });
    let admitted = 0;
    fc.assert(
      fc.property(cases, ({ busy, fullPcpusOnly, policy, cpus, init, wishes: names, wholeCores, spansCells }) => {
        const owned = CpuSet.fromWords(Uint32Array.of(busy)).minus(CpuSet.parse('0-1'));
        const host = node({
          cpuManager: { policy: 'static', options: { 'full-pcpus-only': `${fullPcpusOnly}` } },
          topologyManager: { policy },
          assignments: [{ podUID: 'x', container: 'c', cpus: `${owned}` }],
        });
        const networks = names.map((name) => physnet(name));
        const wanted = needs('a', cpus, networks, { wholeCores, spansCells }, init);
        const coarse = new CoarseFit();
        coarse.addNode(host);
        const fits = coarse.fit(coarseNeedOf(wanted), new Int16Array(1)) === 1;
        if (place(wanted, host).outcome !== 'admitted') return;
        admitted++;
        assert.ok(fits);
      }),
      { numRuns: 3000 },
    );
    assert.ok(admitted > 200, `${admitted} admitted`);
  });

  it('refuses a host with more NUMA nodes than it has bits', () => {
    assert.throws(() => new CoarseFit().add(simpleHost(33, 2), CpuSet.EMPTY), /33 NUMA nodes: at most 32/);
  });
});
