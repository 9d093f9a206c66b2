import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { CpuSet } from '../../model/cpu-set.ts';
import { VIRTUAL_MACHINE_INSTANCES } from '../api-server/built-in-types.ts';
import type { LocalClient } from '../clients/local-client.ts';
import { containerIdOf } from '../kubelet/pod-status.ts';
import type { KubePod } from '../objects.ts';
import { vcpusOf } from '../virt-controller/launcher-pod.ts';

interface GuestsDeps {
  readonly client: LocalClient;
  readonly cgroupRoot: string;
  readonly online: CpuSet;
  /** The JavaScript file of the QEMU stand-in. Undefined: launchers run nothing. */
  readonly program: string | undefined;
}

const COMPUTE = 'compute';

/** Runs a process with real threads for each launcher's QEMU, on those of its CPUs that this machine has as well. */
export function createGuests({ client, cgroupRoot, online, program }: GuestsDeps) {
  const running = new Map<string, ChildProcess>();
  const podDirectory = (uid: string) => join(cgroupRoot, 'kubepods/burstable', `pod${uid}`);

  const vcpusFor = ({ metadata: { namespace, ownerReferences = [] } }: KubePod): number => {
    const owner = ownerReferences.find(({ kind }) => kind === VIRTUAL_MACHINE_INSTANCES.kind);
    const vmi = owner && client.get(VIRTUAL_MACHINE_INSTANCES, namespace, owner.name);
    return vmi === undefined ? 0 : vcpusOf(vmi);
  };

  const stop = async (uid: string) => {
    const child = running.get(uid);
    running.delete(uid);
    if (child === undefined) return;
    if (child.exitCode === null && child.signalCode === null) {
      const exited = once(child, 'exit');
      child.kill('SIGKILL');
      await exited;
    }
    await rm(podDirectory(uid), { recursive: true, force: true });
  };

  return {
    async open() {
      await mkdir(join(cgroupRoot, 'kubepods'), { recursive: true });
      await writeFile(join(cgroupRoot, 'cgroup.controllers'), 'cpuset\n');
    },

    async start(pod: KubePod) {
      const { uid = '' } = pod.metadata;
      const vcpus = vcpusFor(pod);
      if (program === undefined || vcpus === 0 || running.has(uid)) return;
      const child = spawn(process.execPath, [program, '--vcpus', String(vcpus)], { stdio: ['pipe', 'pipe', 'ignore'] });
      running.set(uid, child);
      await Promise.race([once(child.stdout, 'data'), once(child, 'exit')]);
      if (running.get(uid) !== child) return;
      if (child.exitCode !== null || child.pid === undefined) throw new Error(`${program} ended before it was ready`);
      const container = join(podDirectory(uid), containerIdOf(uid, COMPUTE));
      await mkdir(container, { recursive: true });
      await writeFile(join(container, 'cpuset.cpus.effective'), `${online.intersect(await machineCpus())}\n`);
      await writeFile(join(container, 'cgroup.procs'), `${child.pid}\n`);
    },

    stop,
    async stopAll() {
      await Promise.all([...running.keys()].map(stop));
    },
    pidsOf: (uid: string) => [running.get(uid)?.pid].filter((pid) => pid !== undefined),
  };
}

/** The CPUs that this process and its children may run on. */
export async function machineCpus(): Promise<CpuSet> {
  const status = await readFile('/proc/self/status', 'utf8');
  return CpuSet.parse(/^Cpus_allowed_list:\s*(.*)$/m.exec(status)?.[1] ?? '');
}
