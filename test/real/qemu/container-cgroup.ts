import { existsSync, mkdirSync, readFileSync, rmdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';

const MOUNT = '/sys/fs/cgroup';
const isV2 = existsSync(join(MOUNT, 'cgroup.controllers'));

/** Whether this machine allows cgroups with their own CPUs. */
export const canMakeCgroups =
  process.getuid?.() === 0 &&
  (isV2
    ? readFileSync(join(MOUNT, 'cgroup.controllers'), 'utf8').includes('cpuset')
    : existsSync(join(MOUNT, 'cpuset/cpuset.cpus')));

/** The real cgroup of a container, in the version of this machine, as a kubelet and virt-handler create it. */
export type ContainerCgroup = ReturnType<typeof makeContainerCgroup>;

/** @param directory for the stand-in of the mount with cgroup version 1 */
export function makeContainerCgroup(directory: string, uid: string, id: string, cpus: string) {
  const name = `plumbline-test-${process.pid}`;
  const top = join(MOUNT, ...(isV2 ? [] : ['cpuset']), name);
  const made: string[] = [];
  const make = (path: string, own: string) => {
    mkdirSync(path);
    made.push(path);
    if (!isV2) writeFileSync(join(path, 'cpuset.mems'), readFileSync(join(dirname(path), 'cpuset.mems')));
    writeFileSync(join(path, 'cpuset.cpus'), own);
  };
  const all = readFileSync('/sys/devices/system/cpu/online', 'utf8').trim();
  let path = top;
  if (isV2) writeFileSync(join(MOUNT, 'cgroup.subtree_control'), '+cpuset');
  for (const part of ['', 'kubepods', 'burstable', `pod${uid}`, id]) {
    path = join(path, part);
    make(path, part === id ? cpus : all);
    if (isV2 && part !== id) writeFileSync(join(path, 'cgroup.subtree_control'), '+cpuset');
  }
  const house = join(path, 'housekeeping');
  let root = top;
  if (!isV2) {
    root = directory;
    symlinkSync(top, join(directory, 'cpuset'));
  }
  return {
    /** Used as the mount of cgroups; contains only this container's. */
    root,
    path,
    /** Moves a process in, with all its threads. */
    add: (pid: number) => writeFileSync(join(path, 'cgroup.procs'), String(pid)),
    /** Creates `housekeeping` or changes its CPUs, and moves threads into it, as virt-handler does at each sync. */
    keepHouse(own: string, tids: readonly number[]) {
      if (existsSync(house)) {
        writeFileSync(join(house, 'cpuset.cpus'), own);
      } else if (isV2) {
        mkdirSync(house);
        made.push(house);
        writeFileSync(join(house, 'cgroup.type'), 'threaded');
        writeFileSync(join(path, 'cgroup.subtree_control'), '+cpuset');
        writeFileSync(join(house, 'cpuset.cpus'), own);
      } else {
        make(house, own);
      }
      for (const tid of tids) writeFileSync(join(house, isV2 ? 'cgroup.threads' : 'tasks'), String(tid));
    },
    housekeeping: () => readFileSync(join(house, 'cpuset.cpus'), 'utf8').trim(),
    cpuset: () => readFileSync(join(path, 'cpuset.cpus'), 'utf8').trim(),
    /** Call it when nothing runs in it any more. */
    remove() {
      for (const one of made.reverse()) rmdirSync(one);
    },
  };
}
