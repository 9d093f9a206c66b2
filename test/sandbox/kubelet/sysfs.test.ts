import assert from 'node:assert/strict';
import { readSysfs } from '../../../hardware/sysfs.ts';
import { createHost, type HostDescription } from '../../../model/host.ts';
import { describeSysfs } from '../../../model/host-sysfs.ts';
import { writeSysfs } from '../../../sandbox/kubelet/sysfs.ts';
import { describeHost } from '../../support/describe-host.ts';
import { tempDirectories } from '../../support/files.ts';
import { TWO_NODES } from '../support.ts';

const HOSTS: Record<string, HostDescription> = {
  'two sockets, SMT2, siblings far apart': TWO_NODES,
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
