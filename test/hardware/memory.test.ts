import assert from 'node:assert/strict';
import { join } from 'node:path';
import { readMemory } from '../../hardware/memory.ts';
import { tempDirectories, writeTree } from '../support/files.ts';

describe('memory from sysfs', () => {
  const temp = tempDirectories();
  let root: string;
  beforeEach(() => {
    root = temp();
  });

  const node = (id: number, kibibytes: number, distance: string, pages: Readonly<Record<string, number>> = {}) => {
    const directory = `devices/system/node/node${id}`;
    writeTree(join(root, directory), {
      meminfo: `Node ${id} MemTotal:       ${kibibytes} kB\nNode ${id} MemFree: 1 kB\n`,
      distance: `${distance}\n`,
    });
    for (const [size, count] of Object.entries(pages)) {
      writeTree(join(root, directory, `hugepages/hugepages-${size}`), { nr_hugepages: `${count}\n` });
    }
  };

  it('has sizes in bytes of every node, including those without CPUs, and distances between nodes with CPUs', async () => {
    node(0, 4096, '10 17 21', { '2048kB': 3, '1048576kB': 0 });
    node(1, 8192, '17 10 28');
    node(3, 1024, '21 28 10', { '1048576kB': 2 });
    assert.deepEqual(await readMemory(root, [0, 3]), {
      cells: [
        { id: 0, memory: 4_194_304, hugePages: { 'hugepages-2Mi': 6_291_456 } },
        { id: 1, memory: 8_388_608 },
        { id: 3, memory: 1_048_576, hugePages: { 'hugepages-1Gi': 2_147_483_648 } },
      ],
      distances: { 0: [10, 21], 3: [21, 10] },
    });
  });

  it('is unknown with a kernel without NUMA', async () => {
    assert.deepEqual(await readMemory(root, [0]), { cells: [], distances: undefined });
  });
});
