import { existsSync, mkdirSync, readFileSync, rmdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

/** A real cpuset cgroup of this machine. */
export interface RealCpuset {
  allow(cpus: string): void;
  add(pid: number): void;
  /** Moves the process back to the root group. */
  remove(pid: number): void;
}

const ROOT = '/sys/fs/cgroup';

/** Creates a cpuset with either version of cgroups; undefined without permission or without cgroups. */
export function makeCpuset(name: string): RealCpuset | undefined {
  const v1 = existsSync(join(ROOT, 'cpuset/cpuset.mems'));
  const root = v1 ? join(ROOT, 'cpuset') : ROOT;
  const group = join(root, name);
  try {
    if (!v1) writeFileSync(join(root, 'cgroup.subtree_control'), '+cpuset');
    mkdirSync(group);
    writeFileSync(join(group, 'cpuset.mems'), v1 ? readFileSync(join(root, 'cpuset.mems'), 'utf8') : '0');
    writeFileSync(join(group, 'cpuset.cpus'), '0');
  } catch {
    return undefined;
  }
  return {
    allow: (cpus) => writeFileSync(join(group, 'cpuset.cpus'), cpus),
    add: (pid) => writeFileSync(join(group, 'cgroup.procs'), String(pid)),
    remove(pid) {
      writeFileSync(join(root, 'cgroup.procs'), String(pid));
      rmdirSync(group);
    },
  };
}
