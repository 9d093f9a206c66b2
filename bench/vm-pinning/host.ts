import { spawn } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { parseMask } from '../../model/cpu-mask/mask.ts';
import { CpuSet } from '../../model/cpu-set.ts';
import { createHost } from '../../model/host.ts';
import { createAffinity } from '../../native/affinity.ts';
import { CgroupTree } from '../../node-agent/processes/cgroup-tree.ts';
import { procThreads } from '../../node-agent/processes/proc.ts';
import { procProcesses } from '../../node-agent/vm-pinning/guest.ts';
import type { LauncherPinningParts, NodeCpus } from '../../node-agent/vm-pinning/launcher-pinning.ts';
import type { Launcher } from '../../node-agent/vm-pinning/launchers.ts';
import { compile } from '../support/c-program.ts';

/** A host with real processes that look like guests; their cgroups are files. */
export interface Host {
  readonly pids: readonly number[];
  readonly launchers: readonly Launcher[];
  readonly parts: LauncherPinningParts;
  readonly node: NodeCpus;
  /** All CPUs of this machine. */
  readonly all: CpuSet;
  stop(): void;
}

/** Number of processes in a launcher in addition to QEMU: virt-launcher and libvirt's daemons. */
const BESIDE = 5;

/** @param others number of processes that are not guests */
export async function startHost(guests: number, vcpus: number, others: number): Promise<Host> {
  const program = compile('vm-pinning/processes.c');
  const root = mkdtempSync(join(tmpdir(), 'plumbline-bench-'));
  const child = spawn(program.path, [guests, vcpus, others].map(String), { stdio: ['pipe', 'pipe', 'inherit'] });
  const pids: number[] = [];
  for await (const line of createInterface({ input: child.stdout })) {
    if (line === 'ready') break;
    pids.push(Number(line));
  }
  const affinity = createAffinity();
  const all = CpuSet.fromWords(affinity.get(process.pid));
  writeFileSync(join(root, 'cgroup.controllers'), 'cpuset');
  const launchers = pids.map((pid, i) => {
    const launcher = launcherOf(i, all);
    const slice = `kubepods-burstable-pod${launcher.uid.replaceAll('-', '_')}.slice`;
    const path = join(
      root,
      'kubepods.slice/kubepods-burstable.slice',
      slice,
      `cri-containerd-${launcher.containerId}.scope`,
    );
    mkdirSync(path, { recursive: true });
    const beside = Array.from({ length: BESIDE }, (_, n) => pid + guests + i * BESIDE + n);
    writeFileSync(join(path, 'cgroup.procs'), `${[pid, ...beside].join('\n')}\n`);
    writeFileSync(join(path, 'cpuset.cpus.effective'), `${all}\n`);
    return launcher;
  });
  return {
    pids,
    launchers,
    all,
    parts: {
      affinity,
      threads: procThreads,
      processes: procProcesses,
      tree: new CgroupTree(root),
      // Only written when a VM is pinned for the first time, which is not measured.
      record: { scope: () => undefined, save: () => undefined, forget: () => undefined },
      nowSeconds: () => performance.now() / 1000,
    },
    node: {
      host: createHost({ cells: [{ id: 0, cpus: String(all) }], cores: [...all].map(String) }),
      reserved: CpuSet.EMPTY,
      owned: CpuSet.EMPTY,
      dedicated: new Set(),
    },
    stop() {
      child.kill('SIGKILL');
      program.remove();
      rmSync(root, { recursive: true, force: true });
    },
  };
}

function launcherOf(i: number, cpus: CpuSet): Launcher {
  const uid = `00000000-0000-0000-0000-${String(i).padStart(12, '0')}`;
  return {
    uid,
    namespace: 'team-a',
    podName: `virt-launcher-${i}`,
    vmi: { name: `vm-${i}`, uid: `vmi-${i}` },
    migrated: false,
    maskRequest: { mask: parseMask(cpus.toString()), fixMismatch: false },
    problem: undefined,
    containerId: `c0ffee${i}`,
  };
}
