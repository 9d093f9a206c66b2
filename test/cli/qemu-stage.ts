import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { qemuThreadRole } from '../../model/launcher/qemu-threads.ts';
import { eventually } from '../support/eventually.ts';
import { pathOf } from '../support/parts.ts';

export type Qemu = Awaited<ReturnType<typeof startQemu>>;

/**
 * Starts a QEMU that emulates in software and is halted, and waits for its monitor.
 * @param more further arguments
 * @param thread `multi`: each vCPU has its own thread
 */
export async function startQemu(
  directory: string,
  vcpus: number,
  more: readonly string[] = [],
  thread: 'multi' | 'single' = 'multi',
) {
  const socket = join(directory, 'qmp.sock');
  const machine = ['-S', '-machine', 'q35', '-accel', `tcg,thread=${thread}`, '-smp', String(vcpus), '-m', '32'];
  const quiet = ['-nodefaults', '-display', 'none', '-name', 'guest=vm,debug-threads=on'];
  const monitor = ['-qmp', `unix:${socket},server=on,wait=off`];
  const child = spawn(pathOf('qemu'), [...machine, ...quiet, ...monitor, ...more], {
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  const pid = child.pid!;
  const threads = () => threadsOf(pid);
  const expected = thread === 'multi' ? vcpus : 0;
  await eventually(() => {
    assert.equal(child.exitCode, null, 'QEMU has ended');
    return existsSync(socket) && threads().filter(({ role }) => role.kind === 'vcpu').length >= expected;
  }, 'QEMU has started');
  const tidsOf = (kind: string) =>
    threads()
      .filter(({ role }) => role.kind === kind)
      .map(({ tid }) => tid);
  return {
    /** The socket of its monitor. */
    socket,
    /** Thread ids of the vCPUs by index, from their names. */
    vcpus: () => {
      const byIndex: number[] = [];
      for (const { tid, role } of threads()) if (role.kind === 'vcpu') byIndex[role.index] = tid;
      return byIndex;
    },
    ioThreads: () => tidsOf('io'),
    emulator: () => tidsOf('emulator'),
    threads: () => threads().map(({ tid }) => tid),
    async stop() {
      if (child.exitCode !== null || child.signalCode !== null) return;
      child.kill('SIGKILL');
      await once(child, 'exit');
    },
  };
}

function threadsOf(pid: number) {
  try {
    return readdirSync(`/proc/${pid}/task`).map((tid) => ({
      tid: Number(tid),
      role: qemuThreadRole(readFileSync(`/proc/${pid}/task/${tid}/comm`, 'utf8').trim()),
    }));
  } catch {
    return [];
  }
}

/** Cpus_allowed_list of a thread, from the kernel. */
export function allowedList(tid: number): string {
  return /Cpus_allowed_list:\s*(\S+)/.exec(readFileSync(`/proc/${tid}/status`, 'utf8'))?.[1] ?? '';
}
