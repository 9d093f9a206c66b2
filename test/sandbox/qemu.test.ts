import assert from 'node:assert/strict';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { CpuSet } from '../../model/cpu-set.ts';
import type { LocalClient } from '../../sandbox/clients/local-client.ts';
import type { KubePod } from '../../sandbox/objects.ts';
import { createGuests, machineCpus } from '../../sandbox/qemu/guests.ts';
import { buildOnce, dist } from '../support/bundles.ts';
import { tempDirectories } from '../support/files.ts';
import { vmiOwner } from '../support/vmi-owner.ts';
import { podOf } from './support.ts';

describe('the guests of an emulated node', () => {
  const temp = tempDirectories();
  before(buildOnce);

  const vmi = { spec: { domain: { cpu: { cores: 2 } } } };
  const launcher = (uid: string): KubePod => {
    const pod = podOf(uid) as KubePod;
    return { ...pod, metadata: { ...pod.metadata, uid, ownerReferences: [vmiOwner('vm', 'vmi')] } };
  };
  const guestsIn = (cgroupRoot: string, program: string | undefined) =>
    createGuests({
      client: { get: () => vmi } as unknown as LocalClient,
      cgroupRoot,
      online: CpuSet.parse('0-8191'),
      program,
    });
  const threadsOf = (pid: number) =>
    readdirSync(`/proc/${pid}/task`).map((tid) => readFileSync(`/proc/${pid}/task/${tid}/comm`, 'utf8').trim());

  it('are processes with the threads of QEMU, in the cgroup of their launcher until it ends', async () => {
    const cgroupRoot = join(temp(), 'cgroup');
    const guests = guestsIn(cgroupRoot, join(dist, 'qemu-stand-in.cjs'));
    await guests.open();
    assert.ok(existsSync(join(cgroupRoot, 'cgroup.controllers')));
    await guests.start(launcher('a'));
    const [pid = 0] = guests.pidsOf('a');
    await guests.start(launcher('a'));
    assert.deepEqual(guests.pidsOf('a'), [pid], 'started once');
    const threads = threadsOf(pid);
    for (const name of ['CPU 0/TCG', 'CPU 1/TCG', 'qemu-system-x86']) assert.ok(threads.includes(name), threads.join());
    const pod = join(cgroupRoot, 'kubepods/burstable/poda');
    const [container = ''] = readdirSync(pod);
    const read = (file: string) => readFileSync(join(pod, container, file), 'utf8').trim();
    assert.deepEqual([read('cgroup.procs'), read('cpuset.cpus.effective')], [`${pid}`, `${await machineCpus()}`]);
    await guests.stopAll();
    assert.deepEqual([guests.pidsOf('a'), existsSync(pod), existsSync(`/proc/${pid}`)], [[], false, false]);
  });

  it('are none without a program, and none of a pod without a VMI', async () => {
    const without = guestsIn(temp(), undefined);
    await without.start(launcher('a'));
    const guests = guestsIn(temp(), join(dist, 'qemu-stand-in.cjs'));
    await guests.start(podOf('b') as KubePod);
    assert.deepEqual([without.pidsOf('a'), guests.pidsOf('b')], [[], []]);
  });
});
