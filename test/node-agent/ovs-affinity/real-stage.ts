import assert from 'node:assert/strict';
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, readFileSync, rmdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { eventually } from '../../support/eventually.ts';

const SAMPLER = fileURLToPath(new URL('../mask-sampler-stage.cjs', import.meta.url));

/** Watches from outside, each millisecond, that no thread of the processes may run on the CPU. */
export async function watchMasks(cpu: number, pids: readonly number[]) {
  const child = fork(SAMPLER, [cpu, ...pids].map(String), { execArgv: [] });
  await once(child, 'message');
  const request = async (message: 'stop' | 'report') => {
    const answered = once(child, 'message');
    child.send(message);
    const [answer] = (await answered) as [{ samples: number; seen: string[] }];
    return answer;
  };
  return {
    /** Ends the watch, whatever it saw. */
    end: () => void child.kill('SIGKILL'),
    /** Ends the watch after the given number of further samples. */
    async sawNone(more = 0): Promise<void> {
      const { samples } = await request('report');
      await eventually(async () => (await request('report')).samples >= samples + more, `${more} samples`);
      assert.deepEqual((await request('stop')).seen, []);
    },
  };
}

const ROOT = '/sys/fs/cgroup';
const UID = '0f7f4f36-7a0c-4c0e-9a4e-3d9d2a1f5b77';

/**
 * Creates the cgroup of a Guaranteed pod's container in this machine's kernel, in the layout of a kubelet, below a group
 * with that name and with either version of cgroups; undefined without permission.
 */
export function makePodCgroup(name: string) {
  const v1 = existsSync(join(ROOT, 'cpuset/cpuset.mems'));
  const top = v1 ? join(ROOT, 'cpuset') : ROOT;
  const levels = [name, 'kubepods', `pod${UID}`, 'c0ffee'];
  const groups = levels.map((_level, i) => join(top, ...levels.slice(0, i + 1)));
  const container = groups.at(-1) ?? '';
  const remove = () => {
    for (const group of [...groups].reverse()) if (existsSync(group)) rmdirSync(group);
  };
  try {
    for (const group of groups) {
      if (!v1) writeFileSync(join(dirname(group), 'cgroup.subtree_control'), '+cpuset');
      mkdirSync(group);
      // A group of version 1 has no CPUs until some are set.
      if (v1) {
        for (const file of ['cpuset.mems', 'cpuset.cpus'])
          writeFileSync(join(group, file), readFileSync(join(dirname(group), file), 'utf8'));
      }
    }
  } catch {
    remove();
    return undefined;
  }
  return {
    /** The mount point of cgroups. */
    root: ROOT,
    /** Moves the process into it and confines it to the CPUs. */
    run(pid: number, cpus: string) {
      writeFileSync(join(container, 'cpuset.cpus'), cpus);
      writeFileSync(join(container, 'cgroup.procs'), String(pid));
    },
    /** Removes it; its processes must have ended. */
    remove,
  };
}
