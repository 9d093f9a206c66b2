import { existsSync, mkdirSync, readFileSync, rmdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';

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
