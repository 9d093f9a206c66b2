import assert from 'node:assert/strict';
import { createHost } from '../../../model/host.ts';
import { SyscallError } from '../../../native/affinity.ts';
import { findGuest } from '../../../node-agent/vm-pinning/guest.ts';
import { Housekeeping } from '../../../node-agent/vm-pinning/housekeeping.ts';
import { set } from '../support.ts';
import { machine } from './stage.ts';

describe('the emulator’s CPUs of a container', () => {
  const HOST = createHost({ cells: [{ id: 0, cpus: '0-7' }], cores: ['0-1', '2-3', '4-5', '6-7'] });

  /** A container with `cpuset` and vCPUs pinned to `pins`. */
  function house(pins: readonly string[], cpuset: string, cgroup: string | undefined, io: readonly string[] = []) {
    const { affinity, parts, add } = machine();
    const threads: Record<number, string> = { 1: 'qemu', 2: 'worker' };
    for (const i of pins.keys()) threads[100 + i] = `CPU ${i}/KVM`;
    // QEMU may start IO threads in any order: here the last one first.
    for (const i of io.keys()) threads[200 + i] = `IO iothread${10 - i}`;
    add(1, 'qemu', threads, cgroup ?? cpuset);
    for (const [i, cpus] of pins.entries()) affinity.masks.set(100 + i, set(cpus));
    for (const [i, cpus] of io.entries()) affinity.masks.set(200 + i, set(cpus));
    const state = { cgroup: cgroup === undefined ? undefined : set(cgroup), writes: 0, fails: false };
    const guest = findGuest([1], parts);
    assert.ok(guest);
    const house = new Housekeeping({
      affinity: () => affinity,
      tree: {
        housekeeping: () => state.cgroup,
        setHousekeeping(_path, cpus) {
          if (state.fails) throw new Error('EACCES');
          state.cgroup = cpus;
          state.writes++;
        },
      },
    });
    const look = (changes = {}) => {
      affinity.sets.length = 0;
      return house.keep({ path: '/c', cpuset: set(cpuset), guest, threads: guest.list(), host: HOST, ...changes });
    };
    const where = (tid: number) => String(affinity.masks.get(tid));
    return { affinity, guest, state, look, where };
  }

  it('are all CPUs without a pinned vCPU; the cgroup and each thread are set once', () => {
    const { look, where, state, affinity } = house(['0', '1'], '0-3', '3');
    const { cgroup, emulator, problems, repairs, targets } = look() ?? {};
    assert.deepEqual([String(cgroup), String(emulator), problems, repairs], ['2-3', '2-3', [], 3]);
    assert.deepEqual([where(1), where(2), where(100), where(101)], ['2-3', '2-3', '0', '1']);
    assert.deepEqual([...(targets?.keys() ?? [])], [1, 2]);
    assert.deepEqual([look()?.repairs, state.writes, affinity.sets], [0, 1, []]);
    affinity.masks.set(2, set('3'));
    assert.deepEqual([look()?.repairs, where(2)], [1, '2-3']);
  });

  it('M8: 7 cores of 1 thread in 8 CPUs: stay the one thread that no core has, without a system call', () => {
    const { look, state, affinity } = house(['1', '17', '2', '18', '3', '19', '4'], '1-4,17-20', '20');
    assert.equal(String(look()?.emulator), '20');
    assert.deepEqual([state.writes, affinity.sets], [0, []]);
  });

  const none: [string, Parameters<typeof house>][] = [
    ['without the cgroup', [['0', '1'], '0-3', undefined]],
    ['without vCPUs', [[], '0-3', '3']],
    ['if vCPUs may use all CPUs', [['0', '1'], '0-1', '1']],
    ['if a vCPU may use two CPUs', [['0', '1-2'], '0-3', '3']],
    ['if two vCPUs share a CPU', [['0', '0'], '0-3', '3']],
  ];
  for (const [name, args] of none) {
    it(`stay unchanged ${name}`, () => {
      const { look, state, affinity } = house(...args);
      assert.equal(look(), undefined);
      assert.deepEqual([state.writes, affinity.sets], [0, []]);
    });
  }

  it('exclude the pins of IO threads, which are kept', () => {
    const { look, where, affinity } = house(['0', '1'], '0-4', '4', ['3']);
    const outcome = look();
    assert.deepEqual([String(outcome?.cgroup), String(outcome?.emulator)], ['2-4', '2,4']);
    assert.deepEqual([where(200), where(1)], ['3', '2,4']);
    assert.ok(!affinity.sets.some((text) => text.startsWith('200 ')));
    assert.equal(outcome?.targets.has(200), false);
  });

  it('depend on the numbers of vCPUs, not on the order of the list, and wait for a missing number', () => {
    const { look, guest, where, affinity } = house(['0', '2'], '0-3', '1');
    assert.equal(look({ threads: guest.list().filter(({ tid }) => tid !== 100) }), undefined);
    assert.equal(String(look({ threads: guest.list().reverse() })?.cgroup), '1,3');
    assert.deepEqual([where(1), affinity.sets.length], ['1,3', 2]);
  });

  describe('with IO thread pins that the kernel has forgotten', () => {
    const BIG = createHost({
      cells: [{ id: 0, cpus: '0-31' }],
      cores: Array.from({ length: 16 }, (_, i) => `${i},${i + 16}`),
    });
    const PINS = ['1', '17', '2', '18', '3', '19', '4', '20'];

    /**
     * As virt-handler leaves it: all threads in its cgroup with one CPU; if the cgroup gets other CPUs, each thread may
     * use them all.
     */
    function forgotten() {
      const scene = house(PINS, '1-6,17-22', '6', ['6', '6']);
      const release = () => {
        if (scene.state.cgroup === undefined) return;
        for (const tid of [1, 2, 200, 201]) scene.affinity.masks.set(tid, scene.state.cgroup);
      };
      return { ...scene, release };
    }

    it('restores the pins with the launcher’s algorithm, in the order of IO threads, and keeps them', () => {
      const scene = forgotten();
      assert.equal(scene.look({ host: BIG })?.cgroup.toString(), '5-6,21-22');
      scene.release();
      const outcome = scene.look({ host: BIG });
      assert.deepEqual([scene.where(200), scene.where(201)], ['21', '5']);
      assert.equal(String(outcome?.emulator), '6,22');
      assert.deepEqual([String(outcome?.targets.get(200)), String(outcome?.targets.get(201))], ['21', '5']);
      scene.release();
      scene.look({ host: BIG });
      assert.deepEqual([scene.where(200), scene.where(201), scene.where(1)], ['21', '5', '6,22']);
    });

    it('restores no pins while the host is unknown', () => {
      const scene = forgotten();
      scene.look({ host: undefined });
      scene.release();
      scene.look({ host: undefined });
      assert.equal(scene.where(200), '5-6,21-22');
      assert.equal(scene.look({ host: BIG })?.targets.get(201)?.toString(), '5');
    });

    it('restores no pins if virt-handler’s value was not seen, or if the container’s CPUs changed', () => {
      const late = house(PINS, '1-6,17-22', '5-6,21-22', ['5-6,21-22', '5-6,21-22']);
      assert.equal(late.look({ host: BIG })?.targets.has(200), false);
      const scene = forgotten();
      scene.look({ host: BIG });
      scene.release();
      scene.look({ host: BIG });
      assert.equal(scene.where(201), '5');
      // The CPUs of the container changed, so the computed pins no longer apply.
      scene.state.cgroup = set('6-7,21-23');
      const outcome = scene.look({ host: BIG, cpuset: set('1-4,6-7,17-23') });
      assert.equal(outcome?.targets.has(200), false);
    });
  });

  it('report a cgroup that cannot be written as a problem, not as a repair', () => {
    const { look, state } = house(['0', '1'], '0-3', '3');
    state.fails = true;
    const { problems, repairs } = look() ?? {};
    assert.deepEqual([problems, repairs], [['setting the cgroup housekeeping to CPUs 2-3 failed: EACCES'], 2]);
  });

  it('report the number of threads that the kernel or a cpuset keeps elsewhere, with the first one, but not ended ones', () => {
    const { look, affinity } = house(['0', '1'], '0-3', '3');
    affinity.forbidden.add(1);
    affinity.cpusetOf = (tid) => (tid === 2 ? set('3') : undefined);
    const { problems, repairs } = look() ?? {};
    assert.deepEqual([problems, repairs], [['2 threads cannot move to their CPUs, such as 1 to 2-3'], 1]);
    affinity.set = (tid) => {
      affinity.masks.delete(tid);
      throw new SyscallError('sched_setaffinity', tid, 3);
    };
    const ended = look();
    assert.deepEqual([ended?.problems, ended?.repairs], [[], 2]);
  });
});
