import assert from 'node:assert/strict';
import { createHost } from '../../model/host.ts';
import { describeSysfs, type SysfsCpu, type SysfsHost } from '../../model/host-sysfs.ts';

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
