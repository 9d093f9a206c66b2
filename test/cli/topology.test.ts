import assert from 'node:assert/strict';
import { mkdirSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import type { topologyData } from '../../cli/topology/run.ts';
import { tempDirectories, writeTree } from '../support/files.ts';
import { parseOutput } from '../support/output-schema.ts';
import { needs } from '../support/parts.ts';
import { assertFails, buildCli, plumbline } from './run.ts';

/** A sysfs of two NUMA nodes of two cores of two threads, with a NIC on the second one and a bond over it. */
const FILES: Readonly<Record<string, string>> = {
  'devices/system/cpu/online': '0-7',
  'devices/system/cpu/isolated': '6-7',
  'devices/system/node/node0/cpulist': '0-1,4-5',
  'devices/system/node/node0/meminfo': 'Node 0 MemTotal:       67108864 kB',
  'devices/system/node/node0/distance': '10 21',
  'devices/system/node/node0/hugepages/hugepages-1048576kB/nr_hugepages': '8',
  'devices/system/node/node1/cpulist': '2-3,6-7',
  'devices/system/node/node1/distance': '21 10',
  'devices/pci/0000:3b:00.0/numa_node': '1',
  'devices/pci/0000:3b:00.0/net/eno1/carrier': '1',
  'devices/pci/0000:3b:00.0/net/eno1/speed': '25000',
  'devices/pci/0000:3b:00.0/net/eno1/ifindex': '2',
  'devices/pci/0000:3b:00.0/net/eno1/iflink': '2',
  'devices/pci/0000:3b:00.0/sriov_numvfs': '4',
  'class/net/bond0/ifindex': '3',
  'class/net/bond0/iflink': '3',
  'class/net/bond0/bonding/slaves': 'eno1',
  'class/net/lo/ifindex': '1',
  'class/net/lo/iflink': '1',
  ...Object.fromEntries(
    Array.from({ length: 8 }, (_, cpu) => [
      [`devices/system/cpu/cpu${cpu}/topology/thread_siblings_list`, `${cpu % 4},${(cpu % 4) + 4}`],
      [`devices/system/cpu/cpu${cpu}/topology/core_id`, String(cpu % 4)],
      [`devices/system/cpu/cpu${cpu}/topology/physical_package_id`, String(Math.floor((cpu % 4) / 2))],
      [`devices/system/cpu/cpu${cpu}/cache/index3/level`, '3'],
      [`devices/system/cpu/cpu${cpu}/cache/index3/type`, 'Unified'],
      [`devices/system/cpu/cpu${cpu}/cache/index3/size`, '32768K'],
      [`devices/system/cpu/cpu${cpu}/cache/index3/shared_cpu_list`, cpu % 4 < 2 ? '0-1,4-5' : '2-3,6-7'],
    ]).flat(),
  ),
};

const GIB = 2 ** 30;
const dataOf = (json: string) => parseOutput<ReturnType<typeof topologyData>>('topology', JSON.parse(json));

describe('plumbline topology', function () {
  this.timeout(300_000);
  const temp = tempDirectories();
  let root: string;

  before(() => {
    buildCli();
    root = temp();
    writeTree(root, FILES);
    symlinkSync('../../devices/pci/0000:3b:00.0/net/eno1', join(root, 'class/net/eno1'));
    symlinkSync('../..', join(root, 'devices/pci/0000:3b:00.0/net/eno1/device'));
  });

  it('draws the machine with its NICs at their NUMA nodes', async () => {
    const { stdout, status } = await plumbline(['topology', '--sysfs-root', root]);
    assert.equal(status, 0);
    assert.deepEqual(stdout.split('\n'), [
      '8 CPUs, 4 cores, 2 NUMA nodes, 2 sockets',
      '',
      'NUMA node 0  (64 GiB, 8 GiB in hugepages-1Gi)',
      '  0 4  │ 1 5',
      '  · ·  │ · ·',
      'NUMA node 1  (bond0 eno1)',
      '  2 6  │ 3 7',
      '  · i  │ · i',
      'i isolated (isolcpus)   · free',
      '',
      'Caches',
      '  L3   2 of 32 MiB, each shared by 4 CPUs',
      '',
      'NIC    NUMA NODE  PCI           DRIVER  LINK        VFS',
      'bond0  1          -             -       -           -',
      'eno1   1          0000:3b:00.0  -       up 25 Gb/s  4',
      '',
    ]);
  });

  it('prints bytes and CPU numbers as data', async () => {
    const { stdout } = await plumbline(['topology', '--sysfs-root', root, '-o', 'json']);
    const { numaNodes, cores, caches, isolated, nics } = dataOf(stdout);
    const hugePages = { 'hugepages-1Gi': 8 * GIB };
    assert.deepEqual(numaNodes, [
      { id: 0, cpus: [0, 1, 4, 5], memory: 64 * GIB, hugePages, distances: [10, 21] },
      { id: 1, cpus: [2, 3, 6, 7], memory: null, hugePages: {}, distances: [21, 10] },
    ]);
    assert.equal(cores.join(' '), '0,4 1,5 2,6 3,7');
    assert.deepEqual(caches[0], { level: 3, type: 'unified', size: 33_554_432, cpus: [0, 1, 4, 5] });
    assert.deepEqual(isolated, [6, 7]);
    const { driver, ...nic } = nics[1]!;
    assert.equal(driver, null);
    const pci = '0000:3b:00.0';
    assert.deepEqual(nic, { name: 'eno1', numaNodes: [1], pci, up: true, speed: 25_000, virtualFunctions: 4 });
  });

  it('prints shared caches and distances with wide', async () => {
    const { stdout } = await plumbline(['topology', '--sysfs-root', root, '-o', 'wide']);
    assert.match(stdout, /each shared by 4 CPUs: 0-1,4-5 \| 2-3,6-7/);
    assert.match(stdout, /Distances\n {2}0: 10 21\n {2}1: 21 10/);
  });

  it('exits with 1 and the fault for a contradictory tree', async () => {
    const broken = temp();
    mkdirSync(join(broken, 'devices/system/cpu'), { recursive: true });
    const ran = await plumbline(['topology', '--sysfs-root', broken]);
    assertFails(ran, 1, /cannot describe this machine: .*online is missing/);
  });

  describe('on this machine', () => {
    needs('linux');
    it('describes it', async () => {
      const { stdout, status } = await plumbline(['topology', '-o', 'json']);
      assert.equal(status, 0);
      assert.ok(dataOf(stdout).numaNodes.length >= 1);
    });
  });
});
