import assert from 'node:assert/strict';
import { readSysfs } from '../../../hardware/sysfs.ts';
import { createHost, type HostDescription } from '../../../model/host.ts';
import { describeSysfs } from '../../../model/host-sysfs.ts';
import { writeSysfs } from '../../../sandbox/kubelet/sysfs.ts';
import { describeHost } from '../../support/describe-host.ts';
import { tempDirectories } from '../../support/files.ts';

const HOSTS: Record<string, HostDescription> = {
  'two sockets, SMT2, siblings far apart': {
    cells: [
      { id: 0, cpus: '0-3,8-11' },
      { id: 1, cpus: '4-7,12-15' },
    ],
    cores: ['0,8', '1,9', '2,10', '3,11', '4,12', '5,13', '6,14', '7,15'],
  },
  'one socket, two NUMA nodes, two caches': {
    cells: [
      { id: 0, cpus: '0-3' },
      { id: 1, cpus: '4-7' },
    ],
    cores: ['0-1', '2-3', '4-5', '6-7'],
    sockets: [{ id: 0, cpus: '0-7' }],
    uncores: [
      { id: 0, cpus: '0-3' },
      { id: 1, cpus: '4-7' },
    ],
  },
  SMT4: { cells: [{ id: 0, cpus: '0-15' }], cores: ['0-3', '4-7', '8-11', '12-15'] },
};

describe('emulated host files', () => {
  const temp = tempDirectories();

  for (const [what, description] of Object.entries(HOSTS)) {
    it(`sysfs gives the agent the described host: ${what}`, async () => {
      const host = createHost(description);
      const root = temp();
      await writeSysfs(root, host);
      assert.deepEqual(describeHost(createHost(describeSysfs(await readSysfs(root)))), describeHost(host));
    });
  }
});
