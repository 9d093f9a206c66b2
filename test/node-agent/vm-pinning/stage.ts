import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { CpuSet } from '../../../model/cpu-set.ts';
import { createHost } from '../../../model/host.ts';
import { CPU_MASK_ANNOTATION } from '../../../model/names.ts';
import { type AssignmentsView, UNKNOWN_VIEW } from '../../../node-agent/assignments/view.ts';
import { CgroupTree } from '../../../node-agent/processes/cgroup-tree.ts';
import type { GuestParts } from '../../../node-agent/vm-pinning/guest.ts';
import { type Launcher, nodeLauncherOf } from '../../../node-agent/vm-pinning/launchers.ts';
import { PinRecord } from '../../../node-agent/vm-pinning/pins-file.ts';
import { VmPinning } from '../../../node-agent/vm-pinning/vm-pinning.ts';
import { FakeAffinity } from '../../native/affinity-stand-in.ts';
import { vmiOwner } from '../../support/vmi-owner.ts';
import { recordingLogger, set, testMetrics } from '../support.ts';

type VmPinningDeps = ConstructorParameters<typeof VmPinning>[0];

/** The cgroup of a container below the mount, as a kubelet with the systemd driver creates it. */
function containerPath(uid: string, id: string): string {
  const slice = `kubepods-burstable-pod${uid.replaceAll('-', '_')}.slice`;
  return `kubepods.slice/kubepods-burstable.slice/${slice}/cri-containerd-${id}.scope`;
}

export interface PretendVm {
  readonly uid: string;
  readonly pid: number;
  launcher: Launcher;
  allowed(name: string): string;
}

export interface VmOptions {
  readonly name?: string;
  readonly vcpus: number;
  readonly mask?: string;
  readonly cpuset: string;
  /** The pins of vCPUs by index: a VM with dedicated CPUs. */
  readonly pins?: readonly number[];
  /** The CPUs in virt-handler's cgroup; undefined: no such cgroup. */
  readonly housekeeping?: string;
}

interface PretendProcess {
  name: string;
  start: number;
  identity: number;
  readonly threads: Map<number, string>;
}

/** Processes as /proc shows them. */
export function machine() {
  const affinity = new FakeAffinity();
  const processes = new Map<number, PretendProcess>();
  const time = { now: 50_000 };
  const parts: GuestParts = {
    affinity,
    threads: {
      list: (pid) => [...(processes.get(pid)?.threads.keys() ?? [])],
      name: (pid, tid) => processes.get(pid)?.threads.get(tid),
      has: (pid, tid) => processes.get(pid)?.threads.has(tid) === true,
    },
    processes: {
      name: (pid) => processes.get(pid)?.name,
      start: (pid) => processes.get(pid)?.start,
      identity: (pid) => processes.get(pid)?.identity,
    },
    nowSeconds: () => time.now / 1000,
  };
  const add = (pid: number, name: string, threads: Record<number, string>, cpus = '0-7') => {
    const named = new Map(Object.entries(threads).map(([tid, thread]) => [Number(tid), thread]));
    processes.set(pid, { name, start: pid * 10, identity: pid, threads: named });
    for (const tid of named.keys()) affinity.masks.set(tid, set(cpus));
  };
  return { affinity, processes, time, parts, add };
}

/** A node with any number of CPUs: cgroups as files, simulated threads and kernel. */
export function createScene(root: string) {
  const { affinity, processes, parts, time } = machine();
  const cores = Array.from({ length: 32 }, (_, i) => (i < 16 ? `${i},${i + 16}` : `${i + 16},${i + 32}`));
  const host = createHost({ cells: [{ id: 0, cpus: '0-63' }], cores });
  const launchers = new Map<string, Launcher>();
  mkdirSync(root, { recursive: true });
  writeFileSync(join(root, 'cgroup.controllers'), 'cpuset cpu\n');
  let next = 1000;
  let view: AssignmentsView = { ...UNKNOWN_VIEW, policy: 'static', reserved: CpuSet.EMPTY, problems: [] };
  let changed = () => {};
  const { log } = recordingLogger();

  const write = (path: string, name: string, text: string) => {
    mkdirSync(path, { recursive: true });
    writeFileSync(join(path, name), `${text}\n`);
  };

  const addVm = (options: VmOptions): PretendVm => {
    const { name = `vm-${next}`, vcpus, mask, cpuset, pins, housekeeping } = options;
    const pid = next++;
    const uid = `00000000-0000-0000-0000-${String(pid).padStart(12, '0')}`;
    const id = `c0ffee${pid}`;
    const path = join(root, containerPath(uid, id));
    for (const name of ['cpuset.cpus.effective', 'cpuset.cpus']) write(path, name, cpuset);
    write(path, 'cgroup.procs', `${pid - 1}\n${pid}`);
    const named = new Map<string, number>();
    const threads = new Map<number, string>();
    const add = (thread: string, cpus: string) => {
      const tid = named.size === 0 ? pid : next++;
      named.set(thread, tid);
      threads.set(tid, thread);
      affinity.masks.set(tid, CpuSet.parse(cpus));
    };
    processes.set(pid, { name: 'qemu-system-x86', start: pid * 7, identity: pid * 7, threads });
    const emulator = housekeeping ?? cpuset;
    for (const thread of ['qemu-system-x86', 'IO mon_iothread', 'vnc_worker']) add(thread, emulator);
    for (let i = 0; i < vcpus; i++) add(`CPU ${i}/KVM`, pins === undefined ? cpuset : String(pins[i]));
    const hk = join(path, 'housekeeping');
    if (housekeeping !== undefined) write(hk, 'cpuset.cpus', housekeeping);
    const inHousekeeping = (tid: number) => existsSync(hk) && !threads.get(tid)?.startsWith('CPU ');
    const before = affinity.cpusetOf;
    const read = (file: string) => CpuSet.parse(readFileSync(file, 'utf8'));
    affinity.cpusetOf = (tid) =>
      threads.has(tid) ? read(join(inHousekeeping(tid) ? hk : path, 'cpuset.cpus')) : before(tid);
    const annotations = mask === undefined ? {} : { [CPU_MASK_ANNOTATION]: mask };
    const vm: PretendVm = {
      uid,
      pid,
      launcher: launcherPod(name, uid, id, { annotations }),
      allowed: (thread) => String(CpuSet.fromWords(affinity.get(named.get(thread) ?? 0))),
    };
    launchers.set(uid, vm.launcher);
    if (pins !== undefined) hold(uid, cpuset);
    changed();
    return vm;
  };

  const hold = (podUID: string, cpus: string) => {
    const entry = { podUID, container: 'compute', cpus: CpuSet.parse(cpus), name: undefined };
    view = { ...view, assignments: [...view.assignments, entry], owned: view.owned.union(entry.cpus) };
  };

  const startOf = parts.processes.start;
  const deps: VmPinningDeps = {
    ...parts,
    tree: new CgroupTree(root),
    record: new PinRecord({ path: join(root, 'state/vm-pins.json'), bootId: 'boot-1', startOf, log }),
    launchers: {
      items: launchers,
      run: (signal) => new Promise((resolve) => signal.addEventListener('abort', () => resolve())),
    },
    onLaunchers: (listener) => {
      changed = listener;
      return () => {};
    },
    assignments: { view: () => view, subscribe: () => () => false },
    host: () => host,
    checkInterval: 0.01,
    events: { record: () => {}, flush: async () => {} },
    nodeName: 'worker-1',
    log,
    metrics: testMetrics(),
  };

  return {
    affinity,
    launchers,
    deps,
    addVm,
    hold,
    /** Replaces the annotations of the pod. */
    annotate(vm: PretendVm, annotations: Readonly<Record<string, string>>) {
      const { vmi, uid, containerId = '' } = vm.launcher;
      vm.launcher = launcherPod(vmi.name, uid, containerId, { annotations });
      launchers.set(uid, vm.launcher);
      changed();
    },
    set view(change: Partial<AssignmentsView>) {
      view = { ...view, ...change };
    },
    /** Advances the clock by milliseconds. */
    pass: (milliseconds: number) => {
      time.now += milliseconds;
    },
    /** Creates an agent; each reads the record of the previous one. */
    create: (more: Partial<VmPinningDeps> = {}) => {
      const record = new PinRecord({ path: join(root, 'state/vm-pins.json'), bootId: 'boot-1', startOf, log });
      return new VmPinning({ ...deps, record, ...more });
    },
  };
}

type Metadata = Partial<Record<'annotations' | 'labels', Readonly<Record<string, string>>>>;

/** As virt-controller creates it. */
export function launcherPod(name: string, uid: string, id: string, metadata: Metadata = {}): Launcher {
  const launcher = nodeLauncherOf({
    metadata: {
      name: `virt-launcher-${name}-x`,
      namespace: 'team-a',
      uid,
      ...metadata,
      labels: { 'kubevirt.io': 'virt-launcher', ...metadata.labels },
      ownerReferences: [vmiOwner(name, `vmi-${uid}`)],
    },
    spec: { containers: [{ name: 'compute', resources: undefined }] },
    status: { containerStatuses: [{ name: 'compute', containerID: `containerd://${id}` }] },
  });
  if (launcher === undefined) throw new Error('not a launcher');
  return launcher;
}
