import assert from 'node:assert/strict';
import fc from 'fast-check';
import { World } from './world.ts';

const number = fc.nat(50);
type Step = (world: World) => void;

/** Weighted so that the nodes are full most of the time. */
const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 6, arbitrary: number.map((kind) => (world: World) => world.create(kind)) },
  {
    weight: 8,
    arbitrary: fc.tuple(number, fc.integer({ min: 1, max: 2 }), number).map(
      ([which, most, pick]) =>
        (world: World) =>
          world.schedule(which, most, pick, pick % 8 === 0),
    ),
  },
  { weight: 6, arbitrary: number.map((which) => (world: World) => world.bind(which)) },
  { weight: 2, arbitrary: number.map((which) => (world: World) => world.nominate(which)) },
  { weight: 1, arbitrary: number.map((which) => (world: World) => world.fail(which)) },
  { weight: 6, arbitrary: number.map((which) => (world: World) => world.admit(which)) },
  { weight: 3, arbitrary: number.map((which) => (world: World) => world.report(which)) },
  { weight: 3, arbitrary: number.map((which) => (world: World) => world.hearReport(which)) },
  { weight: 8, arbitrary: fc.constant((world: World) => world.hearPod()) },
  { weight: 2, arbitrary: number.map((which) => (world: World) => world.end(which)) },
  { weight: 2, arbitrary: fc.constantFrom(7, 61, 300, 599).map((seconds) => (world: World) => world.wait(seconds)) },
  { weight: 1, arbitrary: fc.constant((world: World) => world.restartScheduler()) },
  { weight: 1, arbitrary: fc.constant((world: World) => world.takeOver()) },
);

/** Raise it for a deeper search: 4,000 runs take about ten seconds for each case. */
const RUNS = Number(process.env['PLUMBLINE_PROPERTY_RUNS'] ?? 400);
const NODES = ['n0', 'n1'];

/** Counts promises and admissions over all runs, to show that the property was really tested. */
function check(changes: ConstructorParameters<typeof World>[1], numRuns: number) {
  const counts = { promised: 0, admissions: 0, refused: 0, evicted: 0 };
  fc.assert(
    fc.property(fc.array(step, { minLength: 60, maxLength: 240 }), (sequence) => {
      const world = new World(NODES, changes);
      for (const take of sequence) take(world);
      while (world.pods.some(({ assumed }) => assumed)) world.bind(0);
      while (world.pods.some(({ node, admitted, ended }) => node && !admitted && !ended)) world.admit(0);
      world.giveUpWaiting();
      world.settle();
      for (const [id, ends] of world.ends) assert.equal(ends.length, 1, `claim ${id} ended ${ends.join(' and ')}`);
      assert.equal(world.reservations.size, 0, 'nothing is held once every report has come in');
      counts.promised += world.promised;
      counts.admissions += world.admissions;
      counts.refused += world.refused;
      counts.evicted += world.evicted;
    }),
    { numRuns },
  );
  return counts;
}

describe('reservations fit in every order in which kubelets admit pods', function () {
  this.timeout(300_000);
  const options = { 'full-pcpus-only': 'true' };
  const cases = [
    { name: 'whole cores, no topology policy', changes: { topologyManager: { policy: 'none' } } },
    { name: 'whole cores, best-effort', changes: { topologyManager: { policy: 'best-effort' } } },
    { name: 'whole cores, restricted', changes: { topologyManager: { policy: 'restricted' } } },
    { name: 'whole cores, single-numa-node', changes: { topologyManager: { policy: 'single-numa-node' } } },
    {
      name: 'threads, best-effort',
      changes: { cpuManager: { policy: 'static' }, topologyManager: { policy: 'best-effort' } },
    },
  ];
  for (const { name, changes } of cases) {
    it(name, () => {
      const counts = check({ cpuManager: { policy: 'static', options }, ...changes }, RUNS);
      const { promised, admissions } = counts;
      console.log(`      ${JSON.stringify(counts)}`);
      assert.ok(promised > RUNS / 2 && admissions > RUNS / 2, `${promised} promised, ${admissions} admitted`);
    });
  }
});
