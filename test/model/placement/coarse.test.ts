import assert from 'node:assert/strict';
import fc from 'fast-check';
import { CpuSet } from '../../../model/cpu-set.ts';
import { CoarseFit, coarseNeedOf, NO_FIT } from '../../../model/placement/coarse.ts';
import type { PlacementHost } from '../../../model/placement/needs.ts';
import { hostOf, policies, shapes } from '../kubelet/arbitraries.ts';
import { simpleHost } from '../kubelet/fixture.ts';
import { needs, node, physnet, place, TUNNEL } from './fixture.ts';

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

  it('writes one entry for each host, in the order of their indexes', () => {
    const coarse = new CoarseFit();
    for (const free of ['0-7', '', '0-3']) coarse.add(simpleHost(1, 8), CpuSet.parse(free));
    const out = new Int16Array(5).fill(99);
    assert.equal(coarse.fit({ cpus: 4, wholeCores: true, networks: [] }, out), 2);
    assert.deepEqual([...out], [4, NO_FIT, 0, 99, 99]);
  });

  it('needs the largest container, the sum or the peak of a pod, and its required networks', () => {
    const wanted = [physnet('east'), physnet('west', 'preferred'), TUNNEL];
    const of = (more: object, networks = wanted) => coarseNeedOf(needs('a', 4, networks, more, 6));
    const keys = ['physnet east', 'tunnel'];
    assert.deepEqual(of({}), { cpus: 4, wholeCores: false, networks: keys, largest: 4 });
    assert.deepEqual(of({ spansCells: true }), { cpus: 6, wholeCores: false, networks: [], largest: 4 });
    assert.deepEqual(of({ wholeCores: true }, []), { cpus: 4, wholeCores: true, networks: [], largest: 4 });
    assert.deepEqual(of({}, []), { cpus: 6, wholeCores: false, networks: [], largest: 4 });
  });

  it('refuses a host with more NUMA nodes than it has bits', () => {
    assert.throws(() => new CoarseFit().add(simpleHost(33, 2), CpuSet.EMPTY), /33 NUMA nodes: at most 32/);
    const most = new CoarseFit();
    most.add(simpleHost(32, 2), CpuSet.parse('62-63'));
    most.setNetwork(0, 'last', 1 << 31);
    most.setNetwork(0, 'first', 1);
    assert.deepEqual(fitOf(most, 2, ['last']), [0]);
    assert.deepEqual(fitOf(most, 2, ['first']), [NO_FIT]);
  });
});

describe('model/placement: coarse fit over changing nodes', () => {
  /** A node of some NUMA nodes, whose ids have a gap, with eight CPUs each. */
  const nodeOf = ({ cells, threads, busy, policy, east, tunnel }: Drawn): PlacementHost => {
    const host = simpleHost(cells, 8, threads);
    const idOf = (position: number) => 2 * position + 1;
    const idsOf = (bits: number) => `${CpuSet.of([0, 1, 2].filter((at) => at < cells && bits & (1 << at)).map(idOf))}`;
    const owned = CpuSet.fromWords(Uint32Array.of(busy)).intersect(host.online).minus(CpuSet.parse('0'));
    return node({
      cells: host.cells.map((cell, position) => ({ id: idOf(position), cpus: `${cell.cpus}` })),
      cores: host.cores.map((core) => `${core}`),
      reserved: '0',
      topologyManager: { policy },
      assignments: [{ podUID: 'x', container: 'c', cpus: `${owned}` }],
      physnets: east === undefined ? [] : [{ name: 'east', cells: idsOf(east) }],
      tunnel: tunnel === undefined ? undefined : { cells: idsOf(tunnel) },
    });
  };
  interface Drawn {
    readonly cells: number;
    readonly threads: number;
    readonly busy: number;
    readonly policy: 'none' | 'best-effort' | 'restricted' | 'single-numa-node';
    readonly east: number | undefined;
    readonly tunnel: number | undefined;
  }
  const some = fc.option(fc.nat(7), { nil: undefined });
  const drawn: fc.Arbitrary<Drawn> = fc.record({
    cells: fc.integer({ min: 1, max: 3 }),
    threads: fc.constantFrom(1, 2, 4),
    busy: fc.nat(0xffffff),
    policy: policies,
    east: some,
    tunnel: some,
  });
  const index = fc.nat(5);
  const change = fc.oneof(
    fc.record({ kind: fc.constant('put' as const), index, drawn }),
    fc.record({ kind: fc.constant('put' as const), index, drawn }),
    fc.record({ kind: fc.constant('clear' as const), index }),
    fc.record({ kind: fc.constant('assume' as const), index, cpus: fc.nat(12) }),
    fc.record({ kind: fc.constant('free' as const), index, bits: fc.nat(0xffffff) }),
  );
  const wish = fc.record(
    {
      cpus: fc.nat(16),
      wholeCores: fc.boolean(),
      networks: fc.subarray(['physnet east', 'tunnel', 'physnet ghost']),
      largest: fc.nat(12),
    },
    { requiredKeys: ['cpus', 'wholeCores', 'networks'] },
  );
  type Wish = typeof wish extends fc.Arbitrary<infer T> ? T : never;

  /** The same by sets. */
  const left = (
    host: PlacementHost,
    free: CpuSet,
    assumed: number,
    { cpus, wholeCores, networks, largest = 0 }: Wish,
  ) => {
    const placesOf: Record<string, CpuSet | undefined> = {
      'physnet east': host.networks.physnets.get('east'),
      tunnel: host.networks.tunnel,
    };
    const allowed = host.host.cells.filter(({ id }) =>
      networks.every((name) => !placesOf[name] || placesOf[name].isEmpty || placesOf[name].has(id)),
    );
    const roomOf = (cell: CpuSet) =>
      wholeCores
        ? host.host.cores.filter((core) => core.isSubsetOf(cell) && core.isSubsetOf(free)).flatMap((core) => [...core])
            .length
        : cell.intersect(free).size;
    const rooms = allowed.map((cell) => roomOf(cell.cpus));
    const aligns = host.alignment === 'restricted' || host.alignment === 'single-numa-node';
    if (aligns && largest <= 8 && Math.max(0, ...rooms) < largest) return NO_FIT;
    const room = rooms.reduce((sum, here) => sum + here, 0);
    const all = free.size - assumed;
    return room < cpus || all < cpus ? NO_FIT : Math.min(room - cpus, assumed === 0 ? room : all - cpus);
  };

  it('matches a count over sets after any changes', () => {
    const counted = { fitting: 0, refused: 0 };
    fc.assert(
      fc.property(
        fc.array(change, { minLength: 4, maxLength: 16 }),
        fc.array(wish, { minLength: 4, maxLength: 4 }),
        (changes, wishes) => {
          const coarse = new CoarseFit();
          const hosts: (PlacementHost | undefined)[] = [];
          const free: CpuSet[] = [];
          const assumed: number[] = [];
          for (const one of changes) {
            const at = one.kind === 'clear' || one.kind === 'free' ? Math.min(one.index, coarse.size) : one.index;
            if (one.kind === 'put') {
              hosts[at] = nodeOf(one.drawn);
              free[at] = hosts[at].host.online.minus(hosts[at].reserved).minus(hosts[at].owned);
              coarse.putNode(at, hosts[at]);
            } else if (one.kind === 'clear') {
              coarse.clear(at);
              hosts[at] = undefined;
            } else if (one.kind === 'assume') {
              coarse.setAssumed(at, one.cpus);
              assumed[at] = one.cpus;
            } else if (hosts[at]) {
              free[at] = CpuSet.fromWords(Uint32Array.of(one.bits)).intersect(hosts[at].host.online);
              coarse.setFree(at, free[at]);
            } else coarse.setFree(at, CpuSet.parse('0-7'));
          }
          for (const one of wishes) {
            const out = new Int16Array(coarse.size);
            const fitting = coarse.fit(one, out);
            const expected = Array.from({ length: coarse.size }, (_, at) =>
              hosts[at] ? left(hosts[at], free[at]!, assumed[at] ?? 0, one) : NO_FIT,
            );
            assert.deepEqual([...out], expected);
            assert.equal(fitting, expected.filter((each) => each !== NO_FIT).length);
            counted.fitting += fitting;
            counted.refused += coarse.size - fitting;
          }
        },
      ),
      { numRuns: 800 },
    );
    assert.ok(counted.fitting > 500 && counted.refused > 500, JSON.stringify(counted));
  });
});
