import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { readSysfs } from '../../hardware/sysfs.ts';
import { CpuSet } from '../../model/cpu-set.ts';
import { createHost } from '../../model/host.ts';
import { describeSysfs } from '../../model/host-sysfs.ts';
import { tempDirectories } from '../support/files.ts';
import { needs } from '../support/parts.ts';
import { type RecordedMachine, writeMachine } from './machine-fixture.ts';

/** What the descriptions that follow from it are, model/host.test.ts shows. */
describe('host from sysfs', () => {
  const temp = tempDirectories();
  const describedAt = async (root: string) => describeSysfs(await readSysfs(root));
  const written = (machine: Omit<RecordedMachine, 'name'>) => {
    const root = temp();
    writeMachine(root, { name: '', ...machine });
    return describedAt(root);
  };
  const TWO = { cpus: '0-1', core: [0, 1], package: [0, 0] };

  it('has siblings, sockets, NUMA nodes and last-level caches', async () => {
    const halves = [
      { id: 0, cpus: '0-1,4-5' },
      { id: 1, cpus: '2-3,6-7' },
    ];
    const described = await written({
      cpus: '0-7',
      core: [0, 1, 0, 1, 0, 1, 0, 1],
      package: [0, 0, 1, 1, 0, 0, 1, 1],
      siblings: ['0,4', '1,5', '2,6', '3,7'],
      nodes: { 0: '0-1,4-5', 1: '2-3,6-7' },
      caches: halves.map(({ id, cpus }) => [3, id, cpus] as const),
    });
    assert.deepEqual(described, {
      cells: halves,
      cores: ['0,4', '1,5', '2,6', '3,7'],
      sockets: halves,
      uncores: halves,
    });
  });

  it('has one socket if the firmware has -1', async () => {
    assert.deepEqual(await written({ ...TWO, package: [0, -1] }), {
      cells: [{ id: 0, cpus: '0-1' }],
      cores: ['0', '1'],
      sockets: [{ id: 0, cpus: '0-1' }],
    });
  });

  it('has NUMA nodes in the order of their numbers, without those that have only memory', async () => {
    const { cells } = await written({ ...TWO, nodes: { 0: '', 2: '0', 10: '1' } });
    assert.deepEqual(cells, [
      { id: 2, cpus: '0' },
      { id: 10, cpus: '1' },
    ]);
  });

  it('has no cache that some CPU does not have', async () => {
    const { uncores } = await written({ ...TWO, caches: [[3, 5, '0']] });
    assert.equal(uncores, undefined);
  });

  it('is refused with the next step if sysfs is missing', async () => {
    await assert.rejects(describedAt(temp()), { name: 'SysfsError', message: /is sysfs mounted there/ });
  });

  describe('of this machine', () => {
    needs('linux');
    it('has the CPUs that the kernel lists as online', async () => {
      const host = createHost(describeSysfs(await readSysfs('/sys')));
      assert.ok(host.online.equals(CpuSet.parse(readFileSync('/sys/devices/system/cpu/online', 'utf8'))));
    });
  });
});
