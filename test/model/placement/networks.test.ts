import assert from 'node:assert/strict';
import fc from 'fast-check';
import { needs, node, physnet, place, REPORT } from './fixture.ts';

const STATIC = ['cannot-split', 'may-not-span', 'larger-than-cells'];
const networks = fc.constantFrom<readonly string[]>(
  ['east'],
  ['west'],
  ['east', 'west'],
  ['east', 'bond'],
  ['bond'],
  ['west', 'bond'],
);
const policies = fc.constantFrom('none', 'best-effort', 'restricted', 'single-numa-node');
const versions = fc.constantFrom('v1.35.0', 'v1.36.2');

/** Cores with an owner. */
const loads = fc.subarray(REPORT.cores.slice(1));

describe('whether a node can ever place a pod near its networks', () => {
  it('the answer is the same on an empty and on a full node, and an admitted pod is near all its networks', () => {
    let [spanned, refused] = [0, 0];
    fc.assert(
      fc.property(
        networks,
        fc.integer({ min: 1, max: 7 }),
        fc.boolean(),
        policies,
        versions,
        loads,
        (names, cores, spansCells, policy, kubeletVersion, busy) => {
          const pod = needs(
            'a',
            cores * 2,
            names.map((name) => physnet(name)),
            { spansCells },
          );
          const make = { kubeletVersion, topologyManager: { policy, scope: 'container' } };
          const assignments = busy.map((cpus, i) => ({ podUID: `p${i}`, container: 'c', cpus }));
          const [empty, loaded] = [place(pod, node(make)), place(pod, node({ ...make, assignments }))];
          const reasonOf = (one: typeof empty) => (one.outcome === 'refused' ? one.refusal.reason : one.outcome);
          const never = STATIC.includes(reasonOf(empty));
          assert.equal(STATIC.includes(reasonOf(loaded)), never);
          if (never) {
            assert.equal(reasonOf(loaded), reasonOf(empty));
            refused++;
          }
          if (loaded.outcome !== 'admitted') return;
          const touched = new Set(loaded.cells);
          const cellOf: Readonly<Record<string, readonly number[]>> = { east: [0], west: [1], bond: [0, 1] };
          for (const name of names) {
            const there = cellOf[name] ?? [];
            const near = spansCells
              ? there.some((cell) => touched.has(cell))
              : [...touched].every((c) => there.includes(c));
            assert.ok(near, `${name}: ${[...touched]}`);
          }
          if (spansCells && names.includes('east') && names.includes('west')) spanned++;
        },
      ),
      { numRuns: 2000, seed: 7 },
    );
    assert.ok(spanned > 3 && refused > 100, `${spanned} spanned, ${refused} refused`);
  });
});
