import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { CpuSet } from '../../../model/cpu-set.ts';
import { createHost } from '../../../model/host.ts';
import { CPU_MASK_ANNOTATION } from '../../../model/names.ts';
import { createAffinity } from '../../../native/affinity.ts';
import { connectQmp } from '../../../native/qmp.ts';
import { createCgroupTree } from '../../../node-agent/processes/cgroup-tree.ts';
import { bootId, procThreads } from '../../../node-agent/processes/proc.ts';
import { procProcesses } from '../../../node-agent/vm-pinning/guest.ts';
import { createPinsFile } from '../../../node-agent/vm-pinning/pins-file.ts';
import { createScene, launcherPod } from '../../node-agent/vm-pinning/stage.ts';
import { eventually } from '../../support/eventually.ts';
import { tempDirectories } from '../../support/files.ts';
import { needs, skipFor, skipWithout } from '../../support/parts.ts';
import { type ContainerCgroup, canMakeCgroups, makeContainerCgroup } from './container-cgroup.ts';
import { allowedList, type Qemu, startQemu } from './qemu.ts';

const online = CpuSet.parse(readFileSync('/sys/devices/system/cpu/online', 'utf8'));
const UID = '11111111-2222-3333-4444-555555555555';
const ID = 'feedc0de';
/** Seconds from a change that others made until the agent corrects it; the agent looks once a second. */
const BOUND = 2;
describe('the node agent with a real QEMU and the kernel’s cgroups', function () {
  needs('linux');
  needs('qemu');
  this.timeout(300_000);
  const temp = tempDirectories();
  const affinity = createAffinity();
  let qemu: Qemu;
  let cgroup: ContainerCgroup;
  let stop = async () => {};

  before(function () {
    skipWithout('twoCpus', this);
    if (!canMakeCgroups) skipFor({ name: 'cgroups with cpusets', install: 'run as root' }, this);
  });
  afterEach(async () => {
    await stop();
    await qemu.stop();
    cgroup.remove();
  });

  /** A launcher's QEMU in a container's cgroup with the CPUs 0-1, and an agent that looks as often as one does. */
  const start = async (vcpus: number, mask: string | undefined, io: number, more: readonly string[] = []) => {
    const directory = temp();
    cgroup = makeContainerCgroup(directory, UID, ID, '0-1');
    const objects = Array.from({ length: io }, (_, i) => ['-object', `iothread,id=iothread${i + 1}`]).flat();
    qemu = await startQemu(directory, vcpus, [...objects, ...more]);
    cgroup.add(qemu.pid);
    const scene = createScene(join(directory, 'unused'));
    scene.launchers.set(UID, launcherPod('vm', UID, ID, mask === undefined ? {} : { [CPU_MASK_ANNOTATION]: mask }));
    const { log } = scene.deps;
    const startOf = procProcesses.start;
    const vms = scene.create({
      affinity,
      tree: createCgroupTree(cgroup.root),
      record: createPinsFile(join(directory, 'vm-pins.json'), { bootId: bootId(), startOf, log }),
      threads: procThreads,
      processes: procProcesses,
      now: () => performance.now(),
      host: () => createHost({ cells: [{ id: 0, cpus: String(online) }], cores: [...online].map(String) }),
      checkInterval: 1,
    });
    const run = () => {
      const controller = new AbortController();
      const done = vms.run(controller.signal);
      stop = async () => {
        controller.abort();
        await done;
      };
    };
    return { scene, vms, run };
  };
  const pin = (tids: readonly number[], cpus: string) => {
    for (const tid of tids) affinity.set(tid, CpuSet.parse(cpus).toWords(2));
  };
  const listsOf = (tids: readonly number[]) => [...new Set(tids.map(allowedList))].join(' ');

  it('M2: the whole VM returns to its entry within 2 s after each rewrite by a process like virt-handler', async () => {
    const { vms, run } = await start(1, '1', 1);
    run();
    await eventually(() => vms.pinning()[0]?.state === 'pinned', 'pinned');
    const others = [...qemu.emulator(), ...qemu.ioThreads()];
    for (let round = 0; round < 3; round++) {
      cgroup.keepHouse('0', others);
      pin(others, '0');
      await eventually(() => listsOf(qemu.threads()) === '1', `round ${round}`, BOUND);
      assert.equal(cgroup.cpuset(), '0-1');
    }
  });

  it('vCPUs that others move or plug in are corrected within 2 s', async () => {
    const possible = ['-smp', '2,maxcpus=3,sockets=3,cores=1,threads=1'];
    const { vms, run } = await start(2, '1', 0, possible);
    run();
    await eventually(() => vms.pinning()[0]?.state === 'pinned', 'pinned');
    for (let round = 0; round < 3; round++) {
      pin(qemu.vcpus().slice(round % 2), '0');
      await eventually(() => listsOf(qemu.vcpus()) === '1', `round ${round}`, BOUND);
    }
    const qmp = await connectQmp(qemu.socket);
    const place = { 'socket-id': 2, 'core-id': 0, 'thread-id': 0 };
    await qmp.execute('device_add', { driver: 'qemu64-x86_64-cpu', id: 'third', ...place });
    qmp.close();
    await eventually(() => qemu.vcpus().length === 3 && listsOf(qemu.vcpus()) === '1', 'the third', BOUND);
    await eventually(() => vms.pinning()[0]?.vcpus === 3, 'it is reported');
  });

  it('M8: the emulator returns to its CPUs within 2 s after each rewrite by a process like virt-handler', async () => {
    const { scene, run } = await start(1, undefined, 1);
    // vCPU 0 is pinned to CPU 0, as libvirt does; the emulator has CPU 1, and virt-handler gives it something else.
    pin(qemu.vcpus(), '0');
    const others = [...qemu.emulator(), ...qemu.ioThreads()];
    const rewrite = () => {
      cgroup.keepHouse('0', others);
      pin(others, '0');
    };
    rewrite();
    scene.hold(UID, '0-1');
    const before = readdirSync(cgroup.path);
    run();
    const isRight = () => cgroup.housekeeping() === '1' && listsOf(others) === '1';
    await eventually(isRight, 'at first', BOUND);
    for (let round = 0; round < 4; round++) {
      rewrite();
      await eventually(isRight, `round ${round}`, BOUND);
    }
    // One that does not rest for a while.
    for (let i = 0; i < 30; i++) {
      rewrite();
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
    await eventually(isRight, 'after it has come to rest', BOUND);
    assert.deepEqual([listsOf(qemu.vcpus()), cgroup.cpuset(), readdirSync(cgroup.path)], ['0', '0-1', before]);
  });
});
