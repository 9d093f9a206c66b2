import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { readSysfs, SysfsError } from '../../hardware/sysfs.ts';
import { CpuSet } from '../../model/cpu-set.ts';
import { createHost, type HostDescription } from '../../model/host.ts';
import { describeSysfs } from '../../model/host-sysfs.ts';
import { describeHost } from '../support/describe-host.ts';
import { tempDirectories, writeTree } from '../support/files.ts';
import { needs } from '../support/parts.ts';

const readHost = async (root: string) => describeSysfs(await readSysfs(root));

/** A CPU's files: siblings, socket, and the id of its level 3 cache. */
function cpu(id: number, siblings: string, socket: number | string = 0, cache?: number): Record<string, string> {
  const base = `devices/system/cpu/cpu${id}`;
  return {
    [`${base}/topology/thread_siblings_list`]: `${siblings}\n`,
    [`${base}/topology/physical_package_id`]: `${socket}\n`,
    [`${base}/cache/index0/level`]: '1\n',
    [`${base}/cache/index0/id`]: `${id}\n`,
    ...(cache === undefined
      ? {}
      : {
          [`${base}/cache/index3/level`]: '3\n',
          [`${base}/cache/index3/id`]: `${cache}\n`,
          [`${base}/cache/index3/size`]: '32768K\n',
          [`${base}/cache/index3/type`]: 'Unified\n',
          [`${base}/cache/index3/shared_cpu_map`]: '3\n',
        }),
  };
}
const online = (list: string) => ({ 'devices/system/cpu/online': `${list}\n` });
const node = (id: number, cpus: string) => ({ [`devices/system/node/node${id}/cpulist`]: `${cpus}\n` });

interface Case {
  name: string;
  files: Record<string, string>;
  expected: HostDescription;
}

const cases: Case[] = [
  {
    name: 'two sockets of two cores of two threads, siblings far apart, one cache for each socket',
    files: {
      ...online('0-7'),
      ...Object.assign(
        {},
        ...[0, 1, 2, 3, 4, 5, 6, 7].map((id) => {
          const half = id % 4 < 2 ? 0 : 1;
          return cpu(id, `${id % 4},${(id % 4) + 4}`, half, half);
        }),
      ),
      ...node(0, '0-1,4-5'),
      ...node(1, '2-3,6-7'),
    },
    expected: {
      cells: [
        { id: 0, cpus: '0-1,4-5' },
        { id: 1, cpus: '2-3,6-7' },
      ],
      cores: ['0,4', '1,5', '2,6', '3,7'],
      sockets: [
        { id: 0, cpus: '0-1,4-5' },
        { id: 1, cpus: '2-3,6-7' },
      ],
      uncores: [
        { id: 0, cpus: '0-1,4-5' },
        { id: 1, cpus: '2-3,6-7' },
      ],
    },
  },
  {
    name: 'SMT off: each CPU is a core',
    files: { ...online('0-1'), ...cpu(0, '0'), ...cpu(1, '1'), ...node(0, '0-1') },
    expected: { cells: [{ id: 0, cpus: '0-1' }], cores: ['0', '1'], sockets: [{ id: 0, cpus: '0-1' }] },
  },
  {
    name: 'no NUMA directories: one NUMA node 0',
    files: { ...online('0-1'), ...cpu(0, '0-1'), ...cpu(1, '0-1') },
    expected: { cells: [{ id: 0, cpus: '0-1' }], cores: ['0-1'], sockets: [{ id: 0, cpus: '0-1' }] },
  },
  {
    name: 'an offline sibling is in no core and no NUMA node',
    files: { ...online('0,2-3'), ...cpu(0, '0-1'), ...cpu(2, '2-3'), ...cpu(3, '2-3'), ...node(0, '0-3') },
    expected: { cells: [{ id: 0, cpus: '0,2-3' }], cores: ['0', '2-3'], sockets: [{ id: 0, cpus: '0,2-3' }] },
  },
  {
    name: 'a node with only memory is ignored; node numbers may have gaps',
    files: { ...online('0-1'), ...cpu(0, '0'), ...cpu(1, '1'), ...node(0, ''), ...node(2, '0'), ...node(10, '1') },
    expected: {
      cells: [
        { id: 2, cpus: '0' },
        { id: 10, cpus: '1' },
      ],
      cores: ['0', '1'],
      sockets: [{ id: 0, cpus: '0-1' }],
    },
  },
  {
    name: 'no topology directory, and a socket -1',
    files: { ...online('0-1'), 'devices/system/cpu/cpu1/topology/physical_package_id': '-1\n' },
    expected: { cells: [{ id: 0, cpus: '0-1' }], cores: ['0', '1'], sockets: [{ id: 0, cpus: '0-1' }] },
  },
  {
    name: 'two last-level caches in one socket; a cache that some CPU does not have is not reported',
    files: { ...online('0-1'), ...cpu(0, '0', 0, 5), ...cpu(1, '1', 0, 9), ...node(0, '0-1') },
    expected: {
      cells: [{ id: 0, cpus: '0-1' }],
      cores: ['0', '1'],
      sockets: [{ id: 0, cpus: '0-1' }],
      uncores: [
        { id: 5, cpus: '0' },
        { id: 9, cpus: '1' },
      ],
    },
  },
];

describe('host from sysfs', () => {
  const temp = tempDirectories();

  for (const { name, files, expected } of cases) {
    it(name, async () => {
      const root = temp();
      writeTree(root, files);
      const description = await readHost(root);
      assert.deepEqual(description, expected);
      createHost(description);
    });
  }

  it('is refused with the next step if sysfs is missing', async () => {
    await assert.rejects(
      readHost(temp()),
      (error) => error instanceof SysfsError && /--sysfs-root/.test(error.message),
    );
  });

  it('is refused with the names of CPUs without a NUMA node', async () => {
    const root = temp();
    writeTree(root, { ...online('0-3'), ...node(0, '0-1') });
    await assert.rejects(readHost(root), /CPUs 2-3 belong to no NUMA node/);
  });

  it('is refused for a malformed list', async () => {
    const root = temp();
    writeTree(root, { ...online('0-3'), ...node(0, '0-x') });
    await assert.rejects(readHost(root), /0-x/);
  });

  it('may have 1,024 CPUs', async () => {
    const root = temp();
    const files: Record<string, string> = { ...online('0-1023') };
    for (let id = 0; id < 1024; id++) Object.assign(files, cpu(id, `${id % 512},${(id % 512) + 512}`));
    writeTree(root, files);
    assert.equal(createHost(await readHost(root)).cores.length, 512);
  });

  describe('of this machine', () => {
    needs('linux');
    it('has the CPUs that the kernel lists as online', async () => {
      const host = createHost(await readHost('/sys'));
      assert.ok(host.online.equals(CpuSet.parse(readFileSync('/sys/devices/system/cpu/online', 'utf8'))));
      assert.ok(createHost(describeHost(host)).online.equals(host.online));
    });
  });
});
