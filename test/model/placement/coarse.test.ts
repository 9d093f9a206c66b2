import assert from 'node:assert/strict';
import fc from 'fast-check';
import { CpuSet } from '../../../model/cpu-set.ts';
import type { HostReport } from '../../../model/kubelet/host-report.ts';
import { type CoarseNeed, coarseFit, coarseNeedOf, countCheck, freeCpusOf } from '../../../model/placement/coarse.ts';
import type { PlacementNeeds } from '../../../model/placement/needs.ts';
import { needs, node, physnet, place, TUNNEL } from './fixture.ts';

const NEED: CoarseNeed = { cpus: 4, wholeCores: false, inOneCell: 0, alongside: [], cells: undefined };
const need = (more: Partial<CoarseNeed> = {}): CoarseNeed => ({ ...NEED, ...more });
const GIB = 1024 ** 3;
/** 4 GiB in pages, and 2 devices, on each of two NUMA nodes. */
function withResources(freePages: readonly number[], freeDevices: readonly number[]): Partial<HostReport> {
  const cells = freePages.map((free, id) => ({
    id,
    memory: 64 * GIB,
    hugePages: { 'hugepages-1Gi': 4 * GIB },
    state: { blocks: free < 4 ? 1 : 0, group: `${id}`, free: { 'hugepages-1Gi': free * GIB, memory: 60 * GIB } },
  }));
  const groups = freeDevices.map((free, id) => ({ cells: `${id}`, total: 2, free }));
  return { memoryManager: { policy: 'Static', cells }, devices: [{ resource: 'example.org/gpu', groups }] };
}
/** The largest container asks for GiB of pages and for devices. */
function asking(pod: PlacementNeeds, pages: number, devices: number): PlacementNeeds {
  const containers = pod.request.containers.map((container) => {
    if (container.kind === 'init') return container;
    const more = { memory: new Map(container.memory), devices: new Map(container.devices) };
    if (pages > 0) more.memory.set('hugepages-1Gi', pages * GIB);
    if (devices > 0) more.devices.set('example.org/gpu', devices);
    return { ...container, ...more };
  });
  return { ...pod, request: { ...pod.request, containers } };
}
describe('coarse fit', () => {
  // NUMA node 0 has six free CPUs, of which four are in whole cores; NUMA node 3 has two.
  const free = [
    { cell: 0, cpus: 6, inWholeCores: 4, amounts: new Map([['hugepages-1Gi', 2]]) },
    { cell: 3, cpus: 2, inWholeCores: 2, amounts: new Map([['hugepages-1Gi', 4]]) },
  ];
  const CASES: readonly [what: string, CoarseNeed, left: number | undefined, inFlight?: number][] = [
    ['all free CPUs', need({ cpus: 8 }), 0],
    ['whole cores, not free threads', need({ cpus: 6, wholeCores: true }), 0],
    ['more than are free near a network', need({ cpus: 3, cells: new Set([3]) }), undefined],
    ['a container that fits into one NUMA node', need({ cpus: 7, inOneCell: 6 }), 1],
    ['pages next to its CPUs', need({ inOneCell: 3, alongside: [['hugepages-1Gi', 2]] }), 4],
    ['pages that are on another NUMA node', need({ inOneCell: 3, alongside: [['hugepages-1Gi', 3]] }), undefined],
    ['CPUs next to pods in flight', need({ cpus: 4 }), 1, 3],
  ];
  for (const [what, wanted, left, inFlight = 0] of CASES) {
    it(`${what}: ${left ?? 'no fit'}`, () => assert.equal(coarseFit(wanted, free, inFlight), left));
  }

  it('needs the largest container, the sum or the peak of a pod, and the NUMA nodes of its required networks', () => {
    const wanted = [physnet('east'), physnet('west', 'preferred'), TUNNEL];
    const of = (more: object, networks = wanted, host = node()) => {
      const pod = needs('a', 4, networks, more, 6);
      return coarseNeedOf(pod, host, pod.wholeCores === true);
    };
    const located = { wholeCores: false, inOneCell: 0, alongside: [], cells: new Set() };
    assert.deepEqual(of({}), { ...located, cpus: 4 });
    assert.deepEqual(of({ spansCells: true }), { ...located, cpus: 6, cells: undefined });
    assert.deepEqual(of({}, []), { ...located, cpus: 6, cells: undefined });
    assert.deepEqual(of({ wholeCores: true }, []), { ...located, cpus: 4, wholeCores: true, cells: undefined });
    assert.deepEqual(of({}, [physnet('vague')]).cells, undefined, 'a network whose NUMA node is unknown');
    const aligned = node({ topologyManager: { policy: 'single-numa-node' } });
    assert.equal(of({}, [], aligned).inOneCell, 4);
  });

  it('never excludes a host that the exact prediction admits', () => {
    const wishes = fc.uniqueArray(fc.constantFrom('east', 'west', 'bond', 'vague', 'ghost'), { maxLength: 2 });
    const cases = fc.record({
      busy: fc.nat(0xffff),
      fullPcpusOnly: fc.boolean(),
      policy: fc.constantFrom('none', 'best-effort', 'restricted', 'single-numa-node'),
      cpus: fc.integer({ min: 1, max: 14 }),
      init: fc.nat(14),
      wishes,
      wholeCores: fc.boolean(),
      spansCells: fc.boolean(),
      scope: fc.constantFrom('container', 'pod'),
      pages: fc.constantFrom(0, 0, 0, 1, 2, 4, 6),
      freePages: fc.tuple(fc.nat(4), fc.nat(4)),
      freeDevices: fc.tuple(fc.nat(2), fc.nat(2)),
      devices: fc.constantFrom(0, 0, 0, 1, 2, 3),
    });
    let admitted = 0;
    let excluded = 0;
    fc.assert(
      fc.property(cases, (one) => {
        const { busy, fullPcpusOnly, policy, cpus, init, wishes: names, wholeCores, spansCells } = one;
        const owned = CpuSet.fromWords(Uint32Array.of(busy)).minus(CpuSet.parse('0-1'));
        const host = node({
          cpuManager: { policy: 'static', options: { 'full-pcpus-only': `${fullPcpusOnly}` } },
          topologyManager: { policy, scope: one.scope },
          ...withResources(one.freePages, one.freeDevices),
          assignments: [{ podUID: 'x', container: 'c', cpus: `${owned}` }],
        });
        const networks = names.map((name) => physnet(name));
        const pod = needs('a', cpus, networks, { wholeCores, spansCells }, init);
        const requested = asking(pod, one.pages, one.devices);
        const fits =
          coarseFit(coarseNeedOf(requested, host, wholeCores), freeCpusOf(host, host.owned), 0) !== undefined;
        if (!fits) excluded++;
        if (!('containers' in place(requested, host))) return;
        admitted++;
        assert.ok(fits);
      }),
      { numRuns: 5000 },
    );
    assert.ok(admitted > 100 && excluded > 200, `${admitted} admitted, ${excluded} excluded`);
  });
});
describe('the count of free CPUs on a node with an unpredictable kubelet', () => {
  /** 14 CPUs are free, 6 of them on NUMA node 0. */
  const host = (changes: Parameters<typeof node>[0] = {}) => node({ kubeletVersion: 'v1.20.0', ...changes });
  const partlyUsed = { assignments: [{ podUID: 'x', container: 'c', cpus: '2' }] };
  const inFlight = [needs('b', 4), needs('c', 4)];
  const east = [physnet('east')];
  const reported = { assignments: [{ podUID: 'b', container: 'c', cpus: '2-7' }] };
  const cases: readonly [what: string, refusal: ReturnType<typeof countCheck>, kind?: string, missing?: number][] = [
    ['all free CPUs', countCheck(needs('a', 14), host())],
    ['one core more than is free', countCheck(needs('a', 16), host()), 'too-few-whole-cores', 2],
    ['CPUs of pods in flight', countCheck(needs('a', 8), host(), inFlight), 'too-few-whole-cores', 2],
    ['a pod in flight that the report shows', countCheck(needs('a', 8), host(reported), [needs('b', 6)])],
    ['too few CPUs near a network', countCheck(needs('a', 8, east), host()), 'network-elsewhere', 2],
    ['whole cores near a network', countCheck(needs('a', 6, east), host(partlyUsed)), 'network-elsewhere', 2],
    ['a guest that may span NUMA nodes', countCheck(needs('a', 8, east, { spansCells: true }), host())],
    ['a network without a known NUMA node', countCheck(needs('a', 8, [physnet('vague')]), host())],
  ];
  for (const [what, refusal, kind, missing] of cases) {
    it(`${what}: ${kind ?? 'may fit'}`, () => assert.deepEqual([refusal?.kind, refusal?.missing], [kind, missing]));
  }

  it('is in the text of a refusal', () => {
    const near = countCheck(needs('a', 8, east), host());
    assert.equal(
      near?.detail,
      'interface if-east (physnet east) is on NUMA node 0, where at most 6 of 8 needed CPUs are free',
    );
    assert.equal(countCheck(needs('a', 16), host())?.detail, '16 CPUs needed; at most 14 CPUs free');
  });
});
