import assert from 'node:assert/strict';
import type { DrainedVm } from '../../diagnosis/drain.ts';
import { createRandom, type Random } from '../lab/random.ts';
import { buildOnce } from '../support/bundles.ts';
import { until } from '../support/until.ts';
import { randomMachine, randomNodes } from './drains/cluster-fixture.ts';
import { type DrainStage, NAMESPACE, startDrainStage } from './drains/stage.ts';

/** Clusters of these nodes, and the fillings of each with other VMs. */
const SEEDS = [1, 2, 3, 4];
const FILLINGS = 5;
const NODES = 5;
const MAX_VMS = 18;

/** Of a VM: its new node and its CPUs there, if it has left. */
interface Outcome {
  readonly outcome: DrainedVm['outcome'];
  readonly node: string | undefined;
  readonly cpus: string;
}

const expected = ({ outcome, place }: DrainedVm): Outcome => {
  return { outcome, node: place?.node, cpus: `${place?.cpus ?? ''}` };
};

const textOf = ({ outcome, node = '-', cpus }: Outcome) => `${outcome} ${node} ${cpus}`;

async function fill(stage: DrainStage, random: Random): Promise<string[]> {
  const running: string[] = [];
  for (let count = 0; count < MAX_VMS; count++) {
    const name = `vm-${count}`;
    if (await stage.start(randomMachine(random, name, NAMESPACE))) running.push(name);
  }
  await stage.settle();
  return running;
}

/** The eviction of one VM, and what follows. */
async function drainOne(stage: DrainStage, vm: DrainedVm): Promise<Outcome> {
  const { name, node } = vm;
  const guest = stage.guestOf(vm);
  assert.ok(guest, `${name} runs`);
  const denied = await stage.evict(guest);
  const arrived = async (outcome: DrainedVm['outcome']): Promise<Outcome> => {
    const pod = await until(`${name} has left ${node}, or waits`, () => {
      if (stage.unscheduled(name)) return 'waits' as const;
      const there = stage.guestOf(vm);
      return there?.spec.nodeName === node ? undefined : there;
    });
    if (pod === 'waits') {
      // Of a node's migrations two run at a time, and one whose target waits is one of them.
      await stage.cancelMigration(name);
      return { outcome: outcome === 'migrates' ? 'blocks' : 'stops', node: undefined, cpus: '' };
    }
    await stage.settle();
    const at = pod.spec.nodeName ?? '';
    return { outcome, node: at, cpus: `${stage.reported(at, pod.metadata.uid)}` };
  };
  if (denied === undefined) {
    await until(`${name} is gone`, () =>
      stage.launchersOf(name).every(({ metadata }) => metadata.uid !== guest.metadata.uid),
    );
    const machine = await until(`${name} has ended or starts again`, () => {
      const { phase } = stage.vmi(name)?.status ?? {};
      if (phase === 'Failed' || phase === 'Succeeded') return stage.isRestarting(name) ? undefined : 'ends';
      return stage.isRestarting(name) && stage.launchersOf(name).length > 0 ? 'starts' : undefined;
    });
    return machine === 'ends' ? { outcome: 'stops', node: undefined, cpus: '' } : arrived('restarts');
  }
  if (denied.includes('is not live-migratable')) return { outcome: 'blocks', node: undefined, cpus: '' };
  assert.match(denied, /triggered evacuation/);
  return arrived('migrates');
}

describe('what simulate --without says, and a drain of the embedded cluster', () => {
  before(() => buildOnce());
  const seen = new Map<string, number>();

  for (const seed of SEEDS) {
    describe(`nodes of seed ${seed}`, () => {
      const random = createRandom(seed);
      let stage: DrainStage;
      before(async () => {
        stage = await startDrainStage(randomNodes(random, NODES));
      });
      after(async () => {
        await stage?.stop();
      });
      afterEach(async () => {
        for (let node = 0; node < NODES; node++) await stage.cordon(`node-${node}`, false);
        await stage.remove();
      });
      for (let filling = 1; filling <= FILLINGS; filling++) {
        it(`filling ${filling}`, async () => {
          const names = await fill(stage, random);
          const full = names.flatMap((name) => stage.vmi(name)?.status?.nodeName ?? []);
          const node = random.oneOf(full);
          const { vms } = await stage.plan(node);
          assert.equal(vms.length, full.filter((one) => one === node).length);
          await stage.cordon(node, true);
          const differences: string[] = [];
          for (const vm of vms) {
            const said = textOf(expected(vm));
            const done = textOf(await drainOne(stage, vm));
            if (said !== done) differences.push(`${vm.name} ${said} (${vm.text}), and ${done}; ${stage.describe(vm)}`);
          }
          assert.deepEqual(differences, []);
          for (const { outcome } of vms) seen.set(outcome, (seen.get(outcome) ?? 0) + 1);
        });
      }
    });
  }

  describe('all of them', () => {
    it('had VMs of every kind', () => {
      assert.deepEqual([...seen.keys()].sort(), ['blocks', 'migrates', 'restarts', 'stops'], JSON.stringify([...seen]));
    });
  });
});
