import assert from 'node:assert/strict';
import { CpuSet } from '../../model/cpu-set.ts';
import {
  assertOnline,
  createHost,
  type HostDescription,
  isWholeCores,
  missingThreads,
  wholeCoresWithin,
} from '../../model/host.ts';
import { describeSysfs, type SysfsCpu, type SysfsHost } from '../../model/host-sysfs.ts';
import { describeHost } from '../support/describe-host.ts';
import { leastProcessorTime } from '../support/processor-time.ts';

const set = (text: string) => CpuSet.parse(text);
const ids = (count: number) => Array.from({ length: count }, (_, id) => id);
const cells = (...lists: readonly (readonly [number, string])[]) => lists.map(([id, cpus]) => ({ id, cpus }));
/** One NUMA node with so many CPUs of one thread. */
const single = (count: number) => ({ cells: cells([0, `0-${count - 1}`]), cores: ids(count).map(String) });
describe('a host with a description in any order', () => {
  const shuffled = {
    cells: cells([1, '4-7'], [0, '0-3']),
    cores: ['6-7', '2-3', '4-5', '0-1'],
    sockets: cells([10, '4-7'], [2, '0-3']),
    uncores: cells([21, '6-7'], [9, '0-5']),
  };

  it('is sorted', () =>
    assert.deepEqual(describeHost(createHost(shuffled)), {
      cells: cells([0, '0-3'], [1, '4-7']),
      cores: ['0-1', '2-3', '4-5', '6-7'],
      sockets: cells([2, '0-3'], [10, '4-7']),
      uncores: cells([9, '0-5'], [21, '6-7']),
    }));

  it('has NUMA nodes as default sockets and sockets as default caches', () => {
    const { sockets, uncores } = describeHost(createHost({ cells: shuffled.cells, cores: shuffled.cores }));
    const byCell = cells([0, '0-3'], [1, '4-7']);
    assert.deepEqual([sockets, uncores], [byCell, byCell]);
    const partly = createHost({ ...shuffled, uncores: cells([21, '6-7']) });
    assert.deepEqual(describeHost(partly).uncores, cells([2, '0-3'], [10, '4-5'], [21, '6-7']));
  });
});
describe('the limits of a host', () => {
  it('allow 64 NUMA nodes, 2048 CPUs, cores of 64 threads and the id 1023 of a NUMA node', () => {
    const each = { cells: ids(64).map((id) => ({ id, cpus: `${id}` })), cores: ids(64).map(String) };
    assert.equal(createHost(each).cells.length, 64);
    assert.equal(createHost(single(2048)).cpus.length, 2048);
    assert.equal(createHost({ cells: cells([0, '0-63']), cores: ['0-63'] }).threadsPerCore, 64);
    assert.equal(createHost({ cells: cells([1023, '0']), cores: ['0'] }).cells[0]?.id, 1023);
  });

  const base = { cells: cells([0, '0-7']), cores: ['0-7'] };
  const refusals: readonly (readonly [string, Partial<HostDescription>, RegExp])[] = [
    ['65 NUMA nodes', { cells: ids(65).map((id) => ({ id, cpus: `${id}` })) }, /^65 NUMA nodes: at most 64/],
    ['2,049 cores', single(2049), /^2049 cores: a host has at most 2048/],
    ['2,049 CPUs', { cells: cells([0, '0-2048']) }, /^NUMA nodes name more than 2048 CPUs/],
    ['a core of 65 CPUs', { cores: ['0-64'] }, /^core 0-64 has 65 CPUs: a core has at most 64/],
    ['a count of 65 CPUs for one core', { counts: { cpus: 65, sockets: 1 } }, /counts 65 CPUs and 1 cores/],
    ['the id 1024 of a NUMA node', { cells: cells([2000, '0'], [1024, '1-7']) }, /^NUMA node 1024: ids end at 1023/],
    ['a CPU beyond any kernel', { cores: ids(400).map(() => '0-65535') }, /CPU ids end at 8191/],
  ];
  for (const [what, description, message] of refusals) {
    it(`refuse ${what} before they are expanded`, () => {
      const refuse = () => assert.throws(() => createHost({ ...base, ...description }), { message });
      const spent = leastProcessorTime(refuse, 2);
      assert.ok(spent < 100, `${spent} ms`);
    });
  }
});
describe('a contradictory description is refused and names the CPU', () => {
  const host = (description: Partial<HostDescription>) => () =>
    createHost({ cells: cells([0, '0-3']), cores: ['0-1', '2-3'], ...description });
  const cases: readonly [string, () => unknown, string][] = [
    ['in two NUMA nodes', host({ cells: cells([0, '0-2'], [1, '2-3']) }), 'CPU 2 is in cell 0 and in cell 1'],
    ['without a NUMA node', host({ cores: ['0-1', '2-3', '4'] }), 'CPU 4 belongs to a core but to no NUMA node'],
    [
      'of a core in two NUMA nodes',
      host({ cells: cells([0, '0'], [1, '1-3']) }),
      'CPU 1 shares a core with CPU 0, but CPU 0 belongs to NUMA node 0 and CPU 1 to NUMA node 1',
    ],
    ['without a socket', host({ sockets: cells([0, '0-2']) }), 'CPU 3 belongs to no socket'],
    [
      'reserved but not there',
      () => assertOnline(host({})(), set('0,9'), 'reserved CPUs'),
      'reserved CPUs 0,9 name CPU 9, which is not online; the host has CPUs 0-3',
    ],
  ];
  for (const [what, act, message] of cases) {
    it(`that is ${what}`, () => assert.throws(act, { name: 'HostError', message }));
  }
});
describe('the cores of a host', () => {
  const hybrid = createHost({ cells: cells([0, '0-3']), cores: ['0-1', '2', '3'] });
  const even = createHost({ cells: cells([0, '0-7']), cores: ['0-1', '2-3', '4-5', '6-7'] });

  it('are those that CPUs fill', () => {
    assert.equal(`${wholeCoresWithin(even, set('0-2,6-7'))}`, '0-1,6-7');
    assert.equal(isWholeCores(even, set('0-3,6-7')), true);
    assert.equal(isWholeCores(even, set('1-2,7')), false);
    assert.equal(isWholeCores(hybrid, set('0-2')), true);
    assert.equal(isWholeCores(hybrid, set('1-2')), false);
  });

  const hostOf = (cores: readonly (readonly number[])[]) =>
    createHost({ cells: cells([0, `${CpuSet.of(cores.flat())}`]), cores: cores.map((core) => core.join()) });
  const regular = ids(4).map((id) => [id, id + 4]);
  const rows: readonly [string, readonly (readonly number[])[], string][] = [
    ['none of a regular host', regular, ''],
    ['the second thread of the last core', [...regular.slice(0, 3), [3]], '7'],
    ['none of a hybrid processor, whose small cores have one thread', [[0, 1], [2, 3], [4], [5]], ''],
  ];
  for (const [what, cores, expected] of rows)
    it(`lack threads: ${what}`, () => assert.equal(`${missingThreads(hostOf(cores))}`, expected));
});

/** A host with one NUMA node whose CPUs have these sibling lists, by CPU id. */
function sysfs(siblings: readonly (string | undefined)[], online: string): Omit<SysfsHost, 'directories'> {
  const cpus = siblings.flatMap((list, id): SysfsCpu[] => (list === undefined ? [] : [{ id, siblings: list }]));
  return { online, cpus, nodes: [{ id: 0, cpus: online }] };
}
const lastLevelCache = (id: number) => ({ level: 3, id, sharedBy: 2 });
describe('a host as the kernel describes it', () => {
  const cases: readonly [string, Omit<SysfsHost, 'directories'>, string, number][] = [
    ['far apart', sysfs(['0,3', '1,4', '2,5', '0,3', '1,4', '2,5'], '0-5'), '0,3 1,4 2,5', 2],
    ['a CPU that is offline', sysfs(['0-1', undefined, '2-3', '2-3'], '0,2-3'), '0 2-3', 1],
    ['hybrid cores with one and two threads', sysfs(['0-1', '0-1', '2', '3'], '0-3'), '0-1 2 3', 1],
  ];
  for (const [what, description, cores, threads] of cases) {
    it(`has the siblings of a core: ${what}`, () => {
      const host = createHost(describeSysfs(description));
      assert.deepEqual([host.cores.join(' '), host.threadsPerCore], [cores, threads]);
    });
  }

  for (const [what, description, message] of [
    ['asymmetric siblings', sysfs(['0-1', '1', '2'], '0-2'), 'CPU 1 is in core 0 and in core 1'],
    ['a CPU that is not its own sibling', sysfs(['1', '1'], '0-1'), 'CPU 0 belongs to NUMA node 0 but to no core'],
    [
      'CPUs without a NUMA node',
      { ...sysfs(['0', '1', '2'], '0-2'), nodes: [{ id: 0, cpus: '0' }] },
      'CPUs 1-2 belong to no NUMA node',
    ],
  ] as const) {
    it(`is refused: ${what}`, () => assert.throws(() => createHost(describeSysfs(description)), { message }));
  }

  const cpus = [0, 1, 2, 3].map((id) => ({
    id,
    siblings: id < 2 ? '0-1' : '2-3',
    socket: 3 - id,
    caches: [lastLevelCache(id)],
  }));

  it('has no offline CPUs, and one NUMA node if the kernel has none', () => {
    const group = (id: number, list: string) => ({ id, cpus: list });
    assert.deepEqual(describeSysfs({ online: '0-2', cpus, nodes: [] }), {
      cells: [group(0, '0-2')],
      cores: ['0-1', '2'],
      sockets: [group(1, '2'), group(2, '1'), group(3, '0')],
      uncores: [group(0, '0'), group(1, '1'), group(2, '2')],
    });
    const { cells } = describeSysfs({ online: '0-1', cpus, nodes: [group(5, '0-3')] });
    assert.deepEqual(cells, [group(5, '0-1')]);
    // The data of an offline CPU is ignored.
    const incomplete = cpus.map((cpu) => (cpu.id === 3 ? { id: 3, siblings: 'x' } : cpu));
    assert.ok(describeSysfs({ online: '0-2', cpus: incomplete, nodes: [] }).uncores);
  });
});
