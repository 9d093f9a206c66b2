import assert from 'node:assert/strict';
import { allocatable, cellOf, FLEETS, hostOf, PHYSNETS, VF_RESOURCE } from '../../../bench/outcome/fleets.ts';
import { machineOf } from '../../../bench/outcome/machine.ts';
import { createStream, needOf, type Stream } from '../../../bench/outcome/stream.ts';
import { createHost } from '../../../model/host.ts';
import { renderLauncherPod } from '../../../sandbox/virt-controller/launcher-pod.ts';
import { instanceOf } from '../../../sandbox/virt-controller/lifecycle.ts';

const fleetOf = (name: string) => FLEETS.find((fleet) => fleet.name === name)!;
const FLEET = fleetOf('8-smt-2-best-effort');

/** Existing VMs after every event, and their CPUs in whole cores. */
function loads({ events }: Stream, threads: number): number[] {
  const sizes = new Map<string, number>();
  return events.map((event) => {
    if ('create' in event) sizes.set(event.create.name, Math.ceil(needOf(event.create) / threads) * threads);
    else assert.ok(sizes.delete(event.delete), `${event.delete} is there when it is deleted`);
    return [...sizes.values()].reduce((sum, size) => sum + size, 0);
  });
}

describe('the stream of the outcome bench', () => {
  it('is the same for the same seed, and different for another', () => {
    const stream = createStream({ seed: 7, fleet: FLEET });
    assert.deepEqual(createStream({ seed: 7, fleet: FLEET }), stream);
    assert.notDeepEqual(createStream({ seed: 8, fleet: FLEET }), stream);
  });

  for (const fleet of FLEETS.filter(({ policy }) => policy === 'restricted')) {
    it(`leaves room in the steady part and exceeds it in the fill: ${fleet.name}`, () => {
      const stream = createStream({ seed: 1, fleet });
      const capacity = allocatable(fleet);
      const after = loads(stream, fleet.threads);
      const steady = stream.events.map((event) => !('create' in event) || event.create.phase === 'steady');
      const inSteady = after.filter((_, i) => steady[i]);
      assert.ok(Math.max(...inSteady) < capacity * 0.85, `${Math.max(...inSteady)} of ${capacity}`);
      assert.ok(after.at(-1)! >= capacity * 1.25);
      assert.deepEqual(
        stream.events.map(({ at }) => at),
        stream.events.map(({ at }) => at).toSorted((a, b) => a - b),
      );
    });
  }

  it('has odd and even sizes, two guest threads, IO threads, VFs, both physnets, bursts and churn', () => {
    const { vms, events } = createStream({ seed: 1, fleet: fleetOf('50-smt-2-best-effort') });
    const share = (test: (vm: (typeof vms)[number]) => boolean) => vms.filter(test).length / vms.length;
    const shares: [what: string, share: number, expected: number][] = [
      ['two guest threads', share(({ threads }) => threads === 2), 4 / 15],
      ['IO threads', share(({ ioThreads }) => ioThreads > 0), 0.2],
      ['the first physnet', share(({ network }) => network === PHYSNETS[0]), 1 / 6],
      ['the second physnet', share(({ network }) => network === PHYSNETS[1]), 1 / 6],
      ['VFs', share(({ vf }) => vf), 1 / 3],
    ];
    for (const [what, actual, expected] of shares) assert.ok(Math.abs(actual - expected) < 0.1, `${what}: ${actual}`);
    assert.ok(share((vm) => needOf(vm) % 2 === 1) > 0.3);
    const oddShared = share((vm) => !vm.isolated && needOf(vm) % 2 === 1);
    assert.equal(oddShared, 0, 'an odd VM without an isolated emulator thread runs nowhere');
    const bursts = new Map<number, number>();
    for (const event of events) if ('create' in event) bursts.set(event.at, (bursts.get(event.at) ?? 0) + 1);
    assert.ok([...bursts.values()].filter((burst) => burst === 8).length >= 5);
  });

  it('renders launchers with the requests of the stream', () => {
    for (const vm of createStream({ seed: 3, fleet: FLEET }).vms) {
      const vmi = instanceOf(machineOf(vm, {}));
      const [compute] = renderLauncherPod(vmi).spec.containers;
      assert.equal(compute?.resources?.limits?.['cpu'], String(needOf(vm)), vm.name);
      assert.equal(compute?.resources?.limits?.[VF_RESOURCE], vm.vf ? '1' : undefined, vm.name);
    }
  });

  it('has fleets whose largest VM fits into a NUMA node without the reserved core', () => {
    for (const fleet of FLEETS) {
      const host = createHost(hostOf(fleet));
      assert.equal(host.threadsPerCore, fleet.threads);
      assert.equal(host.cells.length, fleet.cells);
      const largest = Math.max(...createStream({ seed: 1, fleet: fleetOf('50-smt-2-best-effort') }).vms.map(needOf));
      const cell = host.cells[cellOf('physnet0', fleet)]!;
      assert.ok(cell.cpus.size - fleet.threads >= largest + (largest % 2), fleet.name);
    }
  });
});
