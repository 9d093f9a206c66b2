import assert from 'node:assert/strict';
import { existsSync, mkdirSync, readFileSync, renameSync, rmdirSync, rmSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { mock } from 'node:test';
import fc from 'fast-check';
import { CpuSet } from '../../model/cpu-set.ts';
import { CPU_MASK_ANNOTATION } from '../../model/names.ts';
import { CgroupTree } from '../../node-agent/processes/cgroup-tree.ts';
import { UnreadableError } from '../../node-agent/processes/readable.ts';
import { LauncherChecks, LauncherPinning } from '../../node-agent/vm-pinning/launcher-pinning.ts';
import type { Launcher } from '../../node-agent/vm-pinning/launchers.ts';
import { PinRecord } from '../../node-agent/vm-pinning/pins-file.ts';
import { startVirtualTime } from '../support/virtual-time.ts';
import { eventually, recordingLogger, set, tempDirectories, useDuties } from './support.ts';
import { createScene, launcherPod, type PretendVm } from './vm-pinning/stage.ts';

type PinnedGuest = Parameters<PinRecord['save']>[0];

const temp = tempDirectories();
const vcpusOf = (vm: PretendVm, count: number) => Array.from({ length: count }, (_, i) => vm.allowed(`CPU ${i}/KVM`));

describe('CPU masks on a node', () => {
  const run = useDuties();

  it('M10: for any mask, cpuset, reserved and owned CPUs, no thread gets a CPU of another pod', async () => {
    const cpus = fc.uniqueArray(fc.nat(31), { minLength: 1, maxLength: 12 }).map((ids) => CpuSet.of(ids));
    const masks = fc.array(fc.oneof(fc.constant('all'), cpus.map(String)), { minLength: 1, maxLength: 3 });
    await fc.assert(
      fc.asyncProperty(masks, cpus, cpus, cpus, async (entries, cpuset, reserved, owned) => {
        const directory = temp();
        const scene = createScene(directory);
        scene.view = { reserved };
        scene.hold('other', owned.toString());
        scene.addVm({ vcpus: 3, mask: entries.join(':'), cpuset: cpuset.toString() });
        const vms = scene.create();
        const stop = run(vms);
        scene.pass(3000);
        const before = vms.guests();
        await eventually(() => vms.guests() !== before, 'a pass');
        await stop();
        const allowed = cpuset.minus(reserved).minus(owned);
        for (const call of scene.affinity.sets) {
          assert.ok(set(call.split(' ')[1] ?? '').isSubsetOf(allowed), `${call}, allowed ${allowed}`);
        }
        rmSync(directory, { recursive: true });
      }),
      { numRuns: 40 },
    );
  });

  it('M5: a migration’s target is a pod of its own, pinned as soon as it has threads', async () => {
    const scene = createScene(temp());
    const vm = scene.addVm({ name: 'vm', vcpus: 2, mask: '1:3', cpuset: '0-7' });
    const vms = scene.create();
    run(vms);
    await eventually(() => vms.pinning()[0]?.state === 'pinned', 'pinned');
    const target = scene.addVm({ name: 'vm', vcpus: 2, mask: '1:3', cpuset: '0-7' });
    await eventually(() => vcpusOf(target, 2).join() === '1,3', 'the target is pinned');
    scene.launchers.delete(vm.uid);
    await eventually(() => vms.pinning().length === 1, 'the source is gone');
    assert.equal(vms.pinning()[0]?.podUID, target.uid);
  });

  it('stay reported as pinned while a cgroup cannot be read, and are given back when it can', async () => {
    const root = temp();
    const scene = createScene(root);
    const vm = scene.addVm({ vcpus: 2, mask: '1:3', cpuset: '0-7' });
    let fails = false;
    class FaultyTree extends CgroupTree {
      override cpuset(path: string) {
        if (fails) throw new UnreadableError(path, new Error('EIO'));
        return super.cpuset(path);
      }
    }
    const logged = recordingLogger();
    const vms = scene.create({ tree: new FaultyTree(root), log: logged.log });
    const end = run(vms);
    await eventually(() => vcpusOf(vm, 2).join() === '1,3', 'pinned');
    fails = true;
    await eventually(() => logged.said('reading a VM’s threads failed; keeping their last state'), 'the fault is seen');
    assert.equal(vms.pinning()[0]?.state, 'pinned');
    scene.annotate(vm, {});
    fails = false;
    await eventually(() => vcpusOf(vm, 2).join() === '0-7,0-7', 'given back');
    await eventually(() => logged.said('recovered') && vms.pinning().length === 0, 'logged, and not reported');
    scene.annotate(vm, { [CPU_MASK_ANNOTATION]: '5' });
    await eventually(() => vcpusOf(vm, 2).join() === '5,5', 'pinned again');
    await end();
    assert.deepEqual([vcpusOf(vm, 2), vms.pinning()], [['5', '5'], []], 'the end of the agent moves nothing');
  });
});

describe('the pinning of one launcher', () => {
  const temp = tempDirectories();
  const NODE = { host: undefined, reserved: undefined, owned: CpuSet.EMPTY, dedicated: new Set<string>() };
  let scene: ReturnType<typeof createScene>;
  beforeEach(() => {
    scene = createScene(temp());
  });

  it('finds no guest before the kubelet reports the container, and the guest afterwards', () => {
    const vm = scene.addVm({ vcpus: 1, mask: '0:2', cpuset: '0-3' });
    const pinning = new LauncherPinning(scene.deps);
    const early = pinning.reconcile({ ...vm.launcher, containerId: undefined }, NODE);
    assert.deepEqual([early.pid, early.container.toString(), early.threads], [undefined, '', []]);
    const later = pinning.reconcile(vm.launcher, NODE);
    assert.deepEqual([later.pid, later.container.toString()], [vm.pid, '0-3']);
  });

  it('applies no mask while the reserved CPUs are unknown', () => {
    const vm = scene.addVm({ vcpus: 1, mask: '0-1', cpuset: '0-7' });
    const pinning = new LauncherPinning(scene.deps);
    const host = scene.deps.host();
    assert.equal(pinning.reconcile(vm.launcher, { ...NODE, host }).mask, undefined);
    assert.equal(vm.allowed('CPU 0/KVM'), '0-7');
    pinning.reconcile(vm.launcher, { ...NODE, host, reserved: CpuSet.of([0]) });
    assert.equal(vm.allowed('CPU 0/KVM'), '1');
  });

  it('refuses a mask that is malformed or meets dedicated CPUs, whether or not the guest runs', () => {
    const malformed = scene.addVm({ vcpus: 1, mask: '1:', cpuset: '0-2' });
    const dedicated = scene.addVm({ vcpus: 1, mask: '1', cpuset: '1-2', pins: [1] });
    const node = { ...NODE, dedicated: new Set([dedicated.uid]) };
    for (const [vm, reason] of [
      [malformed, 'Parse'],
      [dedicated, 'Dedicated'],
    ] as const) {
      const { mask } = new LauncherPinning(scene.deps).reconcile(vm.launcher, node);
      assert.deepEqual([mask?.state, mask?.reason], ['refused', reason]);
    }
    assert.deepEqual(scene.affinity.sets, []);
  });
});

describe('the checks of a node’s launchers', () => {
  const temp = tempDirectories();
  let scene: ReturnType<typeof createScene>;
  let checks: LauncherChecks;
  let now: number;
  let lists: number[];
  let forgotten: string[];
  /** Pods with dedicated CPUs. */
  let dedicated: Set<string>;
  let reserved: CpuSet | undefined;

  beforeEach(() => {
    scene = createScene(temp());
    now = 1_000_000;
    lists = [];
    forgotten = [];
    dedicated = new Set();
    reserved = CpuSet.EMPTY;
    mock.method(performance, 'now', () => now);
    const { threads } = scene.deps;
    const list = (pid: number) => {
      lists.push(pid);
      return threads.list(pid);
    };
    checks = new LauncherChecks({ ...scene.deps, threads: { ...threads, list } }, (uid) => forgotten.push(uid));
  });
  afterEach(() => mock.reset());

  const at = (launchers: readonly Launcher[], onlyStarting = false) =>
    checks.at(launchers, { host: scene.deps.host(), reserved, owned: CpuSet.EMPTY, dedicated }, onlyStarting);
  /** Whether a check of these launchers lists the threads of that VM. */
  const looksAt = ({ pid, launcher }: PretendVm, onlyStarting = false) => {
    lists.length = 0;
    at([launcher], onlyStarting);
    return lists.includes(pid);
  };

  it('show what the last one found, without its moves, while only starting ones are checked', () => {
    const vm = scene.addVm({ vcpus: 1, mask: '3', cpuset: '0-7' });
    const house = scene.addVm({ vcpus: 8, cpuset: '1-5,17-21', pins: [1, 17, 2, 18, 3, 19, 4, 20], housekeeping: '5' });
    dedicated.add(house.uid);
    const displayed = (onlyStarting: boolean) => {
      const [masked, housed] = at([vm.launcher, house.launcher], onlyStarting);
      const { emulator, repairs } = housed?.housekeeping ?? {};
      return [masked?.mask?.state, masked?.mask?.moved, String(emulator), repairs];
    };
    assert.deepEqual(displayed(false), ['pinned', 4, '5,21', 4]);
    assert.deepEqual(displayed(true), ['pinned', 0, '5,21', 0]);
  });

  it('of VMs that are about to start, in between: a mask without vCPU threads, for a minute after the container', () => {
    const plain = scene.addVm({ vcpus: 1, cpuset: '0-7' });
    const running = scene.addVm({ vcpus: 1, mask: '3', cpuset: '0-7' });
    const starting = scene.addVm({ vcpus: 0, mask: '3', cpuset: '0-7' });
    for (const vm of [plain, running]) {
      at([vm.launcher]);
      assert.deepEqual([checks.hasStarting(), looksAt(vm, true), looksAt(vm)], [false, false, true], vm.uid);
    }
    // Without an answer of the kubelet, nothing is found out about a mask.
    reserved = undefined;
    const early = { ...starting, launcher: { ...starting.launcher, containerId: undefined } };
    at([early.launcher]);
    assert.equal(checks.hasStarting(), false, 'its container is not known yet');
    now += 100_000;
    at([starting.launcher]);
    assert.deepEqual([checks.hasStarting(), looksAt(starting, true)], [true, true]);
    now += 59_999;
    assert.deepEqual([checks.hasStarting(), looksAt(starting, true)], [true, true]);
    now += 1;
    assert.deepEqual([checks.hasStarting(), looksAt(starting, true), looksAt(starting)], [false, false, true]);
  });

  it('release a launcher that is gone, and tell which', () => {
    const vm = scene.addVm({ vcpus: 1, mask: '3', cpuset: '0-7' });
    const other = scene.addVm({ vcpus: 1, mask: '4', cpuset: '0-7' });
    at([vm.launcher, other.launcher]);
    assert.deepEqual([vm.allowed('CPU 0/KVM'), other.allowed('CPU 0/KVM'), forgotten], ['3', '4', []]);
    at([other.launcher]);
    assert.deepEqual([vm.allowed('CPU 0/KVM'), other.allowed('CPU 0/KVM'), forgotten], ['0-7', '4', [vm.uid]]);
    at([other.launcher]);
    assert.deepEqual(forgotten, [vm.uid]);
    at([vm.launcher]);
    at([]);
    assert.equal(looksAt(vm, true), true, 'it is a new one');
  });
});

describe('a launcher of the node', () => {
  it('has the id of its container, and the label of a migration’s target', () => {
    const { containerId, migrated } = launcherPod('vm', 'uid', 'plain');
    assert.deepEqual([containerId, migrated], ['plain', false]);
    const labels = { 'kubevirt.io/migrationJobUID': 'job' };
    assert.equal(launcherPod('vm', 'uid', 'plain', { labels }).migrated, true);
  });

  for (const id of ['../../init.scope', '', 'a'.repeat(200), 'b/c']) {
    it(`cannot point to another cgroup with its container id: ${id.slice(0, 30)}`, () =>
      assert.equal(launcherPod('vm', 'uid', id).containerId, undefined));
  }
});

describe('the record of pinned VMs', () => {
  const temp = tempDirectories();
  let path: string;
  let logged: ReturnType<typeof recordingLogger>;
  let stop: AbortController;
  /** The start of each process by its id. */
  let alive: Map<number, number>;

  beforeEach(() => {
    path = join(temp(), 'state/vm-pins.json');
    stop = new AbortController();
    logged = recordingLogger();
    alive = new Map([7, 8, 9].map((pid) => [pid, pid * 10]));
  });
  const open = (bootId = 'boot', onLate = () => {}) => {
    const record = new PinRecord({ path, bootId, startOf: (pid) => alive.get(pid), log: logged.log });
    record.load(stop.signal, onLate);
    return record;
  };
  const guest = (podUID: string, pid: number, scope: PinnedGuest['scope'] = 'vcpus') => {
    return { podUID, pid, start: pid * 10, scope };
  };
  const saved = () => JSON.parse(readFileSync(path, 'utf8')) as { bootId: string; guests: PinnedGuest[] };
  const uids = () => saved().guests.map(({ podUID }) => podUID);

  it('is read by the next agent of the same boot only', () => {
    const first = open();
    first.save(guest('a', 7));
    first.save(guest('b', 8));
    first.save(guest('b', 8, 'vm'));
    const { ino } = statSync(path);
    first.save(guest('b', 8, 'vm'));
    assert.equal(statSync(path).ino, ino, 'written only when it changes');
    assert.deepEqual(saved(), { bootId: 'boot', guests: [guest('a', 7), guest('b', 8, 'vm')] });
    const next = open();
    assert.deepEqual([next.has('a'), next.has('b'), next.has('c')], [true, true, false]);
    assert.deepEqual([next.scope('a', guest('a', 7)), next.scope('b', guest('b', 8))], ['vcpus', 'vm']);
    assert.equal(open('another boot').has('a'), false);
    assert.deepEqual(logged.lines, []);
  });

  it('does not hold another process of the same launcher', () => {
    const record = open();
    record.save(guest('a', 7));
    assert.equal(record.scope('a', { pid: 8, start: 70 }), undefined);
    assert.equal(record.scope('a', { pid: 7, start: 71 }), undefined);
    assert.equal(record.scope('b', { pid: 7, start: 70 }), undefined);
  });

  it('loses a guest that is forgotten, and every guest whose process has ended or is another one', () => {
    const record = open();
    for (const [uid, pid] of Object.entries({ a: 7, b: 8, c: 9 })) record.save(guest(uid, pid));
    record.forget('b');
    assert.deepEqual(uids(), ['a', 'c']);
    alive.delete(7);
    record.save(guest('b', 8));
    assert.deepEqual(uids(), ['c', 'b']);
    assert.equal(record.has('a'), false);
    alive.set(9, 91);
    record.save(guest('b', 8, 'vm'));
    assert.deepEqual(saved().guests, [guest('b', 8, 'vm')]);
  });

  it('has no file while no guest is pinned', () => {
    const record = open();
    record.forget('a');
    record.save(guest('a', 7));
    assert.ok(existsSync(path));
    record.forget('a');
    assert.equal(existsSync(path), false);
    assert.equal(record.has('a'), false);
  });

  it('keeps what the agent before recorded until its end, and what was saved in a file that cannot be read', async () => {
    const time = startVirtualTime();
    try {
      const next = new PinRecord({ path, bootId: 'boot', startOf: (pid) => alive.get(pid), log: logged.log });
      open().save(guest('a', 7));
      next.load(stop.signal, () => {});
      next.save(guest('b', 8));
      assert.deepEqual(saved().guests, [guest('a', 7), guest('b', 8)]);
      renameSync(path, `${path}.elsewhere`);
      mkdirSync(path);
      let late = 0;
      const third = open('boot', () => late++);
      third.save(guest('b', 8, 'vm'));
      rmdirSync(path);
      renameSync(`${path}.elsewhere`, path);
      await time.pass(10);
      assert.deepEqual([saved().guests, late], [[guest('a', 7), guest('b', 8, 'vm')], 1]);
    } finally {
      stop.abort();
      time.end();
    }
  });
});
