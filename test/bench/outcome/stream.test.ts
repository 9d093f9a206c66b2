import assert from 'node:assert/strict';
import { allocatable, FLEETS, VF_RESOURCE } from '../../../bench/outcome/fleets.ts';
import { machineOf } from '../../../bench/outcome/machine.ts';
import { createStream, needOf, type Stream } from '../../../bench/outcome/stream.ts';
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

  it('renders launchers with the requests of the stream', () => {
    for (const vm of createStream({ seed: 3, fleet: FLEET }).vms) {
      const vmi = instanceOf(machineOf(vm, {}));
      const [compute] = renderLauncherPod(vmi).spec.containers;
      assert.equal(compute?.resources?.limits?.['cpu'], String(needOf(vm)), vm.name);
      assert.equal(compute?.resources?.limits?.[VF_RESOURCE], vm.vf ? '1' : undefined, vm.name);
    }
  });
});
