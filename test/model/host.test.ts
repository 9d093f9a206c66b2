import assert from 'node:assert/strict';
import { CpuSet } from '../../model/cpu-set.ts';
import {
  assertOnline,
  createHost,
  type HostDescription,
  HostError,
  isWholeCores,
  missingThreads,
  unevenCore,
} from '../../model/host.ts';
import { describeSysfs, type SysfsCpu, type SysfsHost } from '../../model/host-sysfs.ts';
import { describeHost } from '../support/describe-host.ts';

/** A host with one NUMA node whose CPUs have these sibling lists, by CPU id. */
function sysfs(siblings: readonly (string | undefined)[], online: string): Omit<SysfsHost, 'directories'> {
  const cpus = siblings.flatMap((list, id): SysfsCpu[] => (list === undefined ? [] : [{ id, siblings: list }]));
  return { online, cpus, nodes: [{ id: 0, cpus: online }] };
}

const lastLevelCache = (id: number) => ({ level: 3, id, sharedBy: 2 });

function thrown(act: () => unknown): string {
  try {
    act();
  } catch (error) {
    if (error instanceof HostError) return error.message;
    throw error;
  }
  return 'nothing';
}

describe('model/host: siblings from sysfs', () => {
  const cases: readonly [string, Omit<SysfsHost, 'directories'>, string, number][] = [
    ['are next to each other: 0-1', sysfs(['0-1', '0-1', '2-3', '2-3'], '0-3'), '0-1 2-3', 2],
    [
      'are far apart: 0,4',
      sysfs(['0,4', '1,5', '2,6', '3,7', '0,4', '1,5', '2,6', '3,7'], '0-7'),
      '0,4 1,5 2,6 3,7',
      2,
    ],
    [
      'are eight threads: 0-7',
      sysfs(
        Array.from({ length: 16 }, (_, id) => (id < 8 ? '0-7' : '8-15')),
        '0-15',
      ),
      '0-7 8-15',
      8,
    ],
    ['are single threads without SMT', sysfs(['0', '1', '2'], '0-2'), '0 1 2', 1],
    ['may end with a newline', sysfs(['0-1\n', '0-1\n'], '0-1\n'), '0-1', 2],
    ['may include an offline CPU', sysfs(['0-1', undefined, '2-3', '2-3'], '0,2-3'), '0 2-3', 1],
    ['may differ between hybrid cores with one and two threads', sysfs(['0-1', '0-1', '2', '3'], '0-3'), '0-1 2 3', 1],
    ['may form three uneven cores', sysfs(['0,3', '1,4', '2,5', '0,3', '1,4', '2,5'], '0-5'), '0,3 1,4 2,5', 2],
  ];
  for (const [name, description, cores, threads] of cases) {
    it(name, () => {
      const host = createHost(describeSysfs(description));
      assert.equal(host.cores.join(' '), cores);
      assert.equal(host.threadsPerCore, threads);
    });
  }

  it('may be 1,024 CPUs', () => {
    const siblings = Array.from({ length: 1024 }, (_, id) => `${id % 512},${(id % 512) + 512}`);
    const host = createHost(describeSysfs(sysfs(siblings, '0-1023')));
    assert.equal(host.cores.length, 512);
    assert.equal(`${host.online}`, '0-1023');
  });

  it('form one NUMA node if there are none', () => {
    assert.deepEqual(describeSysfs({ ...sysfs(['0', '1'], '0-1'), nodes: [] }).cells, [{ id: 0, cpus: '0-1' }]);
  });

  it('form sockets and caches if every CPU names one', () => {
    const cpus = [0, 1].map((id) => ({ id, siblings: `${id}`, socket: id, caches: [lastLevelCache(7)] }));
    const described = describeSysfs({ online: '0-1', cpus, nodes: [] });
    assert.deepEqual(described.sockets, [
      { id: 0, cpus: '0' },
      { id: 1, cpus: '1' },
    ]);
    assert.deepEqual(described.uncores, [{ id: 7, cpus: '0-1' }]);
    const unknown = cpus.map((cpu) => ({ ...cpu, socket: -1, caches: [cpu.id === 0 ? lastLevelCache(7) : undefined] }));
    assert.deepEqual(describeSysfs({ online: '0-1', cpus: unknown, nodes: [] }).sockets, [{ id: 0, cpus: '0-1' }]);
    assert.equal(describeSysfs({ online: '0-1', cpus: unknown, nodes: [] }).uncores, undefined);
  });
});

describe('model/host: a contradictory description is refused and names the CPU', () => {
  const host = (description: Partial<HostDescription>) => () =>
    createHost({ cells: [{ id: 0, cpus: '0-3' }], cores: ['0-1', '2-3'], ...description });
  const cases: readonly [string, () => unknown, string][] = [
    [
      'for asymmetric siblings',
      () => createHost(describeSysfs(sysfs(['0-1', '1', '2'], '0-2'))),
      'CPU 1 is in core 0 and in core 1',
    ],
    [
      'for a CPU that is not its own sibling',
      () => createHost(describeSysfs(sysfs(['1', '1'], '0-1'))),
      'CPU 0 belongs to NUMA node 0 but to no core',
    ],
    [
      'for an online CPU without data',
      () => createHost(describeSysfs(sysfs(['0'], '0-1'))),
      'CPU 1 belongs to NUMA node 0 but to no core',
    ],
    [
      'for a CPU in two NUMA nodes',
      host({
        cells: [
          { id: 0, cpus: '0-2' },
          { id: 1, cpus: '2-3' },
        ],
      }),
      'CPU 2 is in cell 0 and in cell 1',
    ],
    ['for a CPU in two cores', host({ cores: ['0-1', '1-2', '3'] }), 'CPU 1 is in core 0 and in core 1'],
    ['for a CPU without a core', host({ cores: ['0-1', '2'] }), 'CPU 3 belongs to NUMA node 0 but to no core'],
    [
      'for a CPU without a NUMA node',
      host({ cores: ['0-1', '2-3', '4'] }),
      'CPU 4 belongs to a core but to no NUMA node',
    ],
    [
      'for a core in two NUMA nodes',
      host({
        cells: [
          { id: 0, cpus: '0' },
          { id: 1, cpus: '1-3' },
        ],
      }),
      'CPU 1 shares a core with CPU 0, but CPU 0 belongs to NUMA node 0 and CPU 1 to NUMA node 1',
    ],
    ['for a CPU without a socket', host({ sockets: [{ id: 0, cpus: '0-2' }] }), 'CPU 3 belongs to no socket'],
    [
      'for reserved CPUs that do not exist',
      () => assertOnline(host({})(), CpuSet.parse('0,9'), 'reserved CPUs'),
      'reserved CPUs 0,9 name CPU 9, which is not online; the host has CPUs 0-3',
    ],
  ];
  for (const [name, act, message] of cases) it(name, () => assert.equal(thrown(act), message));
});

describe('model/host: cores', () => {
  const hybrid = createHost({ cells: [{ id: 0, cpus: '0-3' }], cores: ['0-1', '2', '3'] });

  it('are compared to find one with another number of threads', () => {
    assert.equal(`${unevenCore(hybrid)}`, '2');
    assert.equal(unevenCore(createHost({ cells: [{ id: 0, cpus: '0-3' }], cores: ['0-1', '2-3'] })), undefined);
  });

  it('are whole if all their threads are in the set', () => {
    assert.equal(isWholeCores(hybrid, CpuSet.parse('0-2')), true);
    assert.equal(isWholeCores(hybrid, CpuSet.parse('1-2')), false);
    assert.equal(isWholeCores(hybrid, CpuSet.EMPTY), true);
  });

  it('stay the same in a description and back', () => {
    assert.deepEqual(createHost(describeHost(hybrid)), hybrid);
  });
});

describe('CPUs that are missing from cores', () => {
  const regular = Array.from({ length: 4 }, (_, i) => [i, i + 4]);
  const hostOf = (cores: readonly (readonly number[])[]) =>
    createHost({
      cells: [
        {
          id: 0,
          cpus: cores
            .flat()
            .sort((a, b) => a - b)
            .join(),
        },
      ],
      cores: cores.map((core) => core.join()),
    });
  const rows: readonly [string, readonly (readonly number[])[], string][] = [
    ['none of a regular host', regular, ''],
    ['the second thread of the last core', [...regular.slice(0, 3), [3]], '7'],
    ['the first thread of a core', [[4], ...regular.slice(1)], '0'],
    [
      'one of four threads',
      [
        [0, 1, 2, 3],
        [4, 5, 7],
        [8, 9, 10, 11],
      ],
      '6',
    ],
    ['none of a hybrid processor, whose small cores have one thread', [[0, 1], [2, 3], [4], [5]], ''],
    ['none if the other cores differ', [[0, 1], [2, 9], [4]], ''],
  ];
  for (const [title, cores, expected] of rows)
    it(title, () => assert.equal(`${missingThreads(hostOf(cores))}`, expected));
});
