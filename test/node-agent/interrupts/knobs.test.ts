import assert from 'node:assert/strict';
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { CpuSet } from '../../../model/cpu-set.ts';
import { createAffinity } from '../../../native/affinity.ts';
import { KernelFiles } from '../../../node-agent/interrupts/kernel-files.ts';
import { maskText } from '../../../node-agent/interrupts/knobs.ts';
import { needs, skipFor } from '../../support/parts.ts';
import { eventually, set } from '../support.ts';
import { createStage } from './stage.ts';

const run = (program: string, ...args: string[]) => execFileSync(program, args, { encoding: 'utf8', stdio: 'pipe' });
const read = (path: string) => readFileSync(path, 'utf8').trim();

it('a mask of several words is written as groups of 32 bits', () => {
  assert.deepEqual(
    [maskText(set('0-3')), maskText(set('1,33')), maskText(set('63'))],
    ['f', '2,00000002', '80000000,00000000'],
  );
});

/** CPU 1 is owned, and the rest of the kernel's work stays out of it: the machine has other tests. */
describe('work of a real kernel on owned CPUs', function () {
  needs('netns');
  needs('ethtool');
  needs('twoCpus');
  this.timeout(60_000);
  let directory = '';
  let namespace: ChildProcess;
  let stage: ReturnType<typeof createStage>;
  const inNamespace = (...args: string[]) => run('nsenter', '-t', String(namespace.pid), '-n', ...args);

  before(async () => {
    directory = mkdtempSync(join(tmpdir(), 'plumbline-'));
    for (const name of ['sys', 'proc/irq', 'proc/2/task/2', 'proc2'])
      mkdirSync(join(directory, name), { recursive: true });
    // A sysfs shows only the network namespace in which it was mounted.
    namespace = spawn('unshare', [
      '--net',
      'sh',
      '-c',
      `mount -t sysfs sysfs ${directory}/sys && echo ready && exec sleep 600`,
    ]);
    await once(namespace.stdout!, 'data');
    inNamespace('ip', 'link', 'add', 'veth0', 'type', 'veth', 'peer', 'name', 'veth1');
    for (const name of ['veth0', 'veth1']) inNamespace('ip', 'link', 'set', name, 'up');
  });
  after(async () => {
    await stage?.end();
    namespace?.kill('SIGKILL');
    for (const name of ['sys', 'proc2']) {
      try {
        run('umount', join(directory, name));
      } catch {
        // It was not mounted.
      }
    }
    rmSync(directory, { recursive: true });
  });

  const start = async (isMoving = true) => {
    const affinity = createAffinity();
    const files = new KernelFiles();
    stage = createStage(join(directory, 'interrupts.json'));
    await stage.start({
      files,
      affinity,
      isMoving,
      procRoot: join(directory, 'proc'),
      sysfsRoot: join(directory, 'sys'),
      cpus: () => ({ online: set('0-1'), quiet: CpuSet.EMPTY, cells: [] }),
    });
  };

  it('packet steering leaves them and returns', async () => {
    const path = join(directory, 'sys/class/net/veth0/queues/rx-0/rps_cpus');
    writeFileSync(path, '2');
    await start();
    await stage.own('1');
    assert.equal(read(path), '1');
    await stage.own('');
    await stage.later(6);
    assert.equal(read(path), '2');
    writeFileSync(path, '0');
    await stage.end();
  });

  it('packet steering of an interface that is renamed returns to its original', async () => {
    const path = (nic: string) => join(directory, `sys/class/net/${nic}/queues/rx-0/rps_cpus`);
    writeFileSync(path('veth0'), '2');
    await start();
    await stage.own('1');
    assert.equal(read(path('veth0')), '1');
    inNamespace('ip', 'link', 'set', 'veth0', 'down');
    inNamespace('ip', 'link', 'set', 'veth0', 'name', 'renamed0');
    await stage.later(12);
    await stage.own('');
    await stage.later(6);
    assert.equal(read(path('renamed0')), '2');
    writeFileSync(path('renamed0'), '0');
    inNamespace('ip', 'link', 'set', 'renamed0', 'name', 'veth0');
    inNamespace('ip', 'link', 'set', 'veth0', 'up');
    await stage.end();
  });

  it('threads of threaded NAPI leave them and return', async () => {
    const affinity = createAffinity();
    // A veth has NAPI only with GRO.
    inNamespace('ethtool', '-K', 'veth0', 'gro', 'on');
    writeFileSync(join(directory, 'sys/class/net/veth0/threaded'), '1');
    const isNapi = (tid: string) => read(`/proc/${tid}/comm`).startsWith('napi/veth0');
    const all = () => read('/proc/2/task/2/children').split(' ').filter(Boolean);
    await eventually(() => all().some(isNapi), 'the thread to exist');
    const tid = Number(all().find(isNapi));
    affinity.set(tid, set('1').toWords(2));
    // Of the machine's threads only this one, and the parent's facts.
    const proc = join(directory, 'proc');
    writeFileSync(join(proc, '2/task/2/children'), String(tid));
    symlinkSync(`/proc/${tid}`, join(proc, String(tid)));
    await start();
    await stage.own('1');
    assert.equal(String(CpuSet.fromWords(affinity.get(tid))), '0');
    await stage.end();
    await start(false);
    assert.equal(String(CpuSet.fromWords(affinity.get(tid))), '1');
    await stage.end();
    writeFileSync(join(directory, 'sys/class/net/veth0/threaded'), '0');
  });

  it('an interrupt leaves them, also after a write through another mount of procfs, and returns', async function () {
    const isIdle = (number: string) => /-config$/.test(read(`/sys/kernel/irq/${number}/actions`));
    const number = run('ls', '/sys/kernel/irq').split('\n').filter(Boolean).find(isIdle);
    if (number === undefined)
      return skipFor({ name: 'an idle virtio interrupt', install: 'run on a virtio machine' }, this);
    const path = `/proc/irq/${number}/smp_affinity_list`;
    const before = read(path);
    symlinkSync(`/proc/irq/${number}`, join(directory, 'proc/irq', number));
    run('mount', '-t', 'proc', 'proc', join(directory, 'proc2'));
    try {
      writeFileSync(path, '1');
      await start();
      await stage.own('1');
      assert.equal(read(path), '0');
      assert.match(stage.states().join(), /: (?:moved|pending)$/);
      writeFileSync(join(directory, `proc2/irq/${number}/smp_affinity_list`), '1');
      await eventually(() => read(path) === '0', 'the foreign write to be corrected by a pass of its own', 2);
      await stage.own('');
      await stage.later(6);
      assert.equal(read(path), '1');
    } finally {
      await stage.end();
      writeFileSync(path, before);
    }
  });
});
