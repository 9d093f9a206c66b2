import assert from 'node:assert/strict';
import fc from 'fast-check';
import { World } from './world.ts';

const number = fc.nat(50);
type Step = (world: World) => void;

const steps: fc.Arbitrary<Step>[] = [
  number.map((kind) => (world) => world.create(kind)),
  fc.tuple(number, fc.integer({ min: 1, max: 3 }), number, fc.boolean()).map(
    ([which, most, pick, fails]) =>
      (world) =>
        world.schedule(which, most, pick, fails && pick % 3 === 0),
  ),
  number.map((which) => (world) => world.bind(which)),
  number.map((which) => (world) => world.nominate(which)),
  number.map((which) => (world) => (which % 4 === 0 ? world.fail(which) : undefined)),
  number.map((which) => (world) => (which % 4 === 0 ? world.takeOver() : undefined)),
  number.map((which) => (world) => world.admit(which)),
  number.map((which) => (world) => world.report(which)),
  number.map((which) => (world) => world.hearReport(which)),
  fc.constant((world) => world.hearPod()),
  number.map((which) => (world) => (which % 4 === 0 ? world.end(which) : undefined)),
  number.map((which) => (world) => (which % 4 === 0 ? world.wait() : undefined)),
];

/** Raise it to look harder: 4,000 take a minute. */
const RUNS = Number(process.env['PLUMBLINE_PROPERTY_RUNS'] ?? 400);
const NODES = ['n0', 'n1', 'n2'];

/** Promises and admissions over all runs, so that the property is known to have bitten. */
function check(
  changes: ConstructorParameters<typeof World>[1],
  numRuns: number,
): { promised: number; admissions: number } {
  const seen = { promised: 0, admissions: 0 };
  fc.assert(
    fc.property(fc.array(fc.oneof(...steps), { minLength: 30, maxLength: 160 }), (sequence) => {
      const world = new World(NODES, changes);
      for (const step of sequence) step(world);
      while (world.pods.some(({ assumed }) => assumed)) world.bind(0);
      while (world.pods.some(({ node, admitted, ended }) => node && !admitted && !ended)) world.admit(0);
      world.settle();
      for (const [id, ends] of world.ends) assert.equal(ends.length, 1, `claim ${id} ended ${ends.join(' and ')}`);
      world.wait();
      assert.equal(world.ledger.size, 0, 'nothing is held once every report has come in');
      seen.promised += world.promised;
      seen.admissions += world.admissions;
    }),
    { numRuns },
  );
  return seen;
}

describe('model/claims: what was promised fits, whatever order the kubelets admit in', function () {
  this.timeout(60_000);
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
      const { promised, admissions } = check({ cpuManager: { policy: 'static', options }, ...changes }, RUNS);
      assert.ok(promised > RUNS / 2 && admissions > RUNS / 2, `${promised} promised, ${admissions} admitted`);
    });
  }
});
