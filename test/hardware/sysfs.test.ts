import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { readSysfs, SysfsError } from '../../hardware/sysfs.ts';
import { CpuSet } from '../../model/cpu-set.ts';
import { createHost } from '../../model/host.ts';
import { describeSysfs } from '../../model/host-sysfs.ts';
import { tempDirectories, writeTree } from '../support/files.ts';
import { needs } from '../support/parts.ts';

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

/** What the descriptions that follow from it are, model/host-sysfs.test.ts shows. */
describe('host from sysfs', () => {
  const temp = tempDirectories();
  const written = async (files: Record<string, string>) => {
    const root = temp();
    writeTree(root, files);
    return describeSysfs(await readSysfs(root));
  };

  it('has siblings, sockets, NUMA nodes and last-level caches', async () => {
    const cpus = Array.from({ length: 8 }, (_, id) => {
      const half = id % 4 < 2 ? 0 : 1;
      return cpu(id, `${id % 4},${(id % 4) + 4}`, half, half);
    });
    const halves = [
      { id: 0, cpus: '0-1,4-5' },
      { id: 1, cpus: '2-3,6-7' },
    ];
    const files = Object.assign(online('0-7'), ...cpus, node(0, '0-1,4-5'), node(1, '2-3,6-7'));
    assert.deepEqual(await written(files), {
      cells: halves,
      cores: ['0,4', '1,5', '2,6', '3,7'],
      sockets: halves,
      uncores: halves,
    });
  });

  it('has each CPU as a core without a topology directory, and one socket if the firmware has -1', async () => {
    const files = { ...online('0-1'), 'devices/system/cpu/cpu1/topology/physical_package_id': '-1\n' };
    assert.deepEqual(await written(files), {
      cells: [{ id: 0, cpus: '0-1' }],
      cores: ['0', '1'],
      sockets: [{ id: 0, cpus: '0-1' }],
    });
  });

  it('has NUMA nodes in the order of their numbers, without those that have only memory', async () => {
    const files = { ...online('0-1'), ...node(0, ''), ...node(2, '0'), ...node(10, '1') };
    assert.deepEqual((await written(files)).cells, [
      { id: 2, cpus: '0' },
      { id: 10, cpus: '1' },
    ]);
  });

  it('has no cache that some CPU does not have', async () => {
    const files = { ...online('0-1'), ...cpu(0, '0', 0, 5), ...cpu(1, '1', 0, 9) };
    assert.deepEqual((await written(files)).uncores, [
      { id: 5, cpus: '0' },
      { id: 9, cpus: '1' },
    ]);
    assert.equal((await written({ ...online('0-1'), ...cpu(0, '0', 0, 5), ...cpu(1, '1') })).uncores, undefined);
  });

  it('is refused with the next step if sysfs is missing', async () => {
    await assert.rejects(written({}), (error) => error instanceof SysfsError && /--sysfs-root/.test(error.message));
  });

  describe('of this machine', () => {
    needs('linux');
    it('has the CPUs that the kernel lists as online', async () => {
      const host = createHost(describeSysfs(await readSysfs('/sys')));
      assert.ok(host.online.equals(CpuSet.parse(readFileSync('/sys/devices/system/cpu/online', 'utf8'))));
    });
  });
});
