import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { pinQemu } from '../../cli/qemu/command.ts';
import { parseMask } from '../../model/cpu-mask/mask.ts';
import { CpuSet } from '../../model/cpu-set.ts';
import { createAffinity } from '../../native/affinity.ts';
import { connectQmp, QmpError } from '../../native/qmp.ts';
import { FakeAffinity } from '../native/affinity-stand-in.ts';
import { root } from '../support/bundles.ts';
import { tempDirectories } from '../support/files.ts';
import { needs, skipWithout } from '../support/parts.ts';
import { allowedList, type Qemu, startQemu } from './qemu-stage.ts';

const MAIN = join(root, 'cli/main.ts');
const online = CpuSet.parse(readFileSync('/sys/devices/system/cpu/online', 'utf8'));

describe('plumbline qemu, with a real QEMU', function () {
  needs('linux');
  needs('qemu');
  this.timeout(300_000);
  const temp = tempDirectories();
  let qemu: Qemu | undefined;
  afterEach(async () => {
    await qemu?.stop();
    qemu = undefined;
  });
  const start = async (vcpus: number, more: readonly string[] = [], thread: 'multi' | 'single' = 'multi') => {
    qemu = await startQemu(temp(), vcpus, more, thread);
    return qemu;
  };
  const ask = async (socket: string) => {
    const qmp = await connectQmp(socket);
    const status = await qmp.status();
    qmp.close();
    return status;
  };
  const run = (socket: string, ...flags: string[]) => {
    const words = ['--import', 'tsx', MAIN, 'qemu', '--qmp', socket, ...flags];
    return spawnSync(process.execPath, words, { cwd: root, encoding: 'utf8' });
  };

  const WITH_IO = ['-object', 'iothread,id=iothread1'];
  const listsOf = (tids: readonly number[]) => [...new Set(tids.map(allowedList))].join(' ');

  it('M2: each vCPU’s Cpus_allowed_list is the list of its mask entry; emulator and IO threads stay', async function () {
    skipWithout('twoCpus', this);
    const { socket, vcpus, emulator, ioThreads } = await start(3, WITH_IO);
    const { status, stdout } = run(socket, '--mask', '1:0:all');
    assert.equal(status, 0);
    assert.deepEqual(vcpus().map(allowedList), ['1', '0', online.toString()]);
    assert.deepEqual([listsOf(emulator()), listsOf(ioThreads())], [online.toString(), online.toString()]);
    assert.match(stdout, /^VCPU {2}THREAD {2}CPUS\n0 {5}\d+ +1\n1 {5}\d+ +0\n.*\nthe guest runs\n$/s);
    assert.equal(await ask(socket), 'running');
  });

  it('M2: one entry pins the whole VM: every thread of the process, not only the main thread', async function () {
    skipWithout('twoCpus', this);
    const { socket, vcpus, threads, ioThreads } = await start(4, WITH_IO);
    const { status, stdout } = run(socket, '--mask', '1');
    assert.equal(status, 0);
    assert.deepEqual(vcpus().map(allowedList), ['1', '1', '1', '1']);
    assert.ok(threads().length > 5 && ioThreads().length > 0);
    assert.equal(listsOf(threads()), '1');
    const others = threads().length - vcpus().length;
    assert.match(stdout, new RegExp(`\\n${others} other threads of QEMU \\(emulator, IO\\) are on the same CPUs\\n`));
  });

  it('M2: the mask all unpins threads that an earlier mask pinned, so that they may run on every CPU', async function () {
    skipWithout('twoCpus', this);
    const { socket, vcpus, threads } = await start(2, WITH_IO);
    assert.equal(run(socket, '--mask', '1').status, 0);
    const { status, stdout } = run(socket, '--mask', 'all');
    assert.equal(status, 0);
    assert.equal(listsOf(threads()), online.toString(), 'after a single entry');
    assert.match(stdout, new RegExp(`\\n0 +\\d+ +${online}\\n`));
    assert.equal(run(socket, '--mask', '1:1').status, 0);
    assert.equal(listsOf(vcpus()), '1');
    assert.equal(run(socket, '--mask', 'all:1').status, 0);
    assert.deepEqual(vcpus().map(allowedList), [online.toString(), '1']);
    assert.equal(run(socket, '--mask', 'all:all').status, 0);
    assert.equal(listsOf(vcpus()), online.toString(), 'after a list');
  });

  it('M2: every thread gets its previous CPUs back if the guest cannot be resumed', async function () {
    skipWithout('twoCpus', this);
    const { socket, threads } = await start(2, WITH_IO);
    const qmp = await connectQmp(socket);
    const refusing = {
      ...qmp,
      execute: async (): Promise<unknown> => {
        assert.equal(listsOf(threads()), '1');
        throw new QmpError('cont: refused');
      },
    };
    const request = { mask: parseMask('1'), vcpus: 2, online, fixMismatch: false, resume: true };
    await assert.rejects(pinQemu(refusing, createAffinity(), request), /cont: refused/);
    assert.equal(listsOf(threads()), online.toString());
    qmp.close();
  });

  for (const [mask, why] of [
    ['0:1', /expected the threads of vCPUs 0 to 1, found those of 0, 1, 2/],
    ['0:0:60000', /names CPU 60000, which is not online on this host/],
  ] as const) {
    it(`M4: ${mask} for three vCPUs is refused: nothing is pinned and the guest does not run`, async () => {
      const { socket, vcpus } = await start(3);
      const before = vcpus().map(allowedList);
      const { status, stderr } = run(socket, '--mask', mask);
      assert.equal(status, 1);
      assert.match(stderr, why);
      assert.match(stderr, /no thread is pinned, and the guest was not resumed/);
      assert.deepEqual([vcpus().map(allowedList), await ask(socket)], [before, 'prelaunch']);
    });
  }

  it('M3: a value of --vcpus that differs from the mask or the machine is refused', async () => {
    const { socket } = await start(2);
    assert.match(run(socket, '--mask', '0:0', '--vcpus', '3').stderr, /has entries for 2 vCPUs, but the VM has 3/);
    assert.match(run(socket, '--mask', '0', '--vcpus', '3').stderr, /expected the threads of vCPUs 0 to 2/);
  });

  it('M5: --fix-cpu-mismatch uses the mask all on a host that is too small, also for threads pinned before', async () => {
    const { socket, threads } = await start(2);
    assert.equal(run(socket, '--mask', '0', '--no-cont').status, 0);
    assert.equal(listsOf(threads()), '0');
    const { status, stdout } = run(socket, '--mask', '0:60000', '--fix-cpu-mismatch');
    assert.equal(status, 0);
    assert.match(stdout, /this host lacks CPUs of the mask 0:60000: no thread is pinned\nthe guest runs/);
    assert.equal(listsOf(threads()), online.toString());
  });

  it('M6: a guest that a user paused is pinned and stays paused; --no-cont does not start a guest', async () => {
    const { socket, vcpus } = await start(2);
    assert.match(run(socket, '--mask', '0', '--no-cont').stdout, /the guest is unchanged: prelaunch/);
    assert.equal(await ask(socket), 'prelaunch');
    const qmp = await connectQmp(socket);
    await qmp.execute('cont');
    await qmp.execute('stop');
    qmp.close();
    assert.match(run(socket, '--mask', '0').stdout, /the guest is unchanged: paused/);
    assert.deepEqual([vcpus().map(allowedList), await ask(socket)], [['0', '0'], 'paused']);
  });

  it('M4: all threads get their previous CPUs back if the kernel refuses to move one of them', async () => {
    const { socket, vcpus } = await start(3);
    const affinity = new FakeAffinity();
    for (const tid of vcpus()) affinity.masks.set(tid, CpuSet.range(0, 7));
    affinity.forbidden.add(vcpus()[2]!);
    const qmp = await connectQmp(socket);
    const request = {
      mask: parseMask('1:2:3'),
      vcpus: 3,
      online: CpuSet.range(0, 7),
      fixMismatch: false,
      resume: true,
    };
    await assert.rejects(pinQemu(qmp, affinity, request), { name: 'NotPinned', message: /EPERM/ });
    affinity.forbidden.clear();
    // A cpuset that allows part of an entry: the kernel takes the rest away silently, and reading back tells.
    affinity.cpusetOf = () => CpuSet.range(0, 2);
    await assert.rejects(pinQemu(qmp, affinity, { ...request, mask: parseMask('1:2:2-3') }), /it got 2;/);
    const masks = vcpus().map((tid) => String(affinity.masks.get(tid)?.intersect(CpuSet.range(0, 2))));
    assert.deepEqual(masks, ['0-2', '0-2', '0-2']);
    assert.equal(await qmp.status(), 'prelaunch');
    qmp.close();
  });

  it('M4: single-threaded emulation, with one thread for all vCPUs, is refused', async () => {
    const { socket } = await start(2, [], 'single');
    const { status, stderr } = run(socket, '--mask', '0:0');
    assert.equal(status, 1);
    assert.match(stderr, /several vCPUs share a thread/);
  });
});
