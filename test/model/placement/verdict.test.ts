import assert from 'node:assert/strict';
import fc from 'fast-check';
import { preparedHost } from '../../../model/placement/needs.ts';
import { placeOnFit } from '../../../model/placement/place.ts';
import { judgeByCount, judgeHost, type NodeVerdict, UNCHECKED } from '../../../model/placement/verdict.ts';
import { needs, node, physnet, place, REPORT } from './fixture.ts';

const none = { cpuManager: { policy: 'none' } };
const plain = { cpuManager: { policy: 'static' } };
const old = { kubeletVersion: 'v1.20.0' };
const owned = (cpus: string) => [{ podUID: 'x', container: 'c', cpus }];
function said(verdict: NodeVerdict | undefined) {
  if (verdict === undefined || verdict.fits) return verdict;
  const { kind, detail, missing } = verdict;
  return { kind, detail, ...(missing !== undefined && { missing }) };
}
describe('the verdict of a node', () => {
  it('names every required network that the node lacks', () => {
    const absent = [physnet('north'), physnet('south'), physnet('east'), physnet('up', 'preferred')];
    const verdict = judgeHost(needs('a', 4, absent), node(), [], 'refuse');
    assert.equal(verdict.fits ? undefined : verdict.text, 'physnet north, physnet south are not on the node');
  });

  it('has a score from 1 to 10, the CPUs, their NUMA nodes and the warnings', () => {
    const verdict = judgeHost(needs('a', 4, [physnet('west'), physnet('vague')]), node(), [], 'refuse');
    assert.ok(verdict.fits);
    assert.deepEqual([`${verdict.cpus}`, verdict.cells], ['8-11', [1]]);
    const warning = 'interface if-vague (physnet vague): its NUMA node is not known here; no affinity';
    assert.deepEqual(verdict.warnings, [warning]);
    const preferring = needs('a', 2, [physnet('west', 'preferred')]);
    const scoreOn = (changes: Parameters<typeof node>[0]) => {
      const judged = judgeHost(preferring, node(changes), [], 'refuse');
      assert.ok(judged.fits && Number.isInteger(judged.score));
      return judged.score;
    };
    const full = { assignments: owned('2-3,6-15') };
    assert.equal(scoreOn({ ...full, physnets: [{ name: 'west', cells: '0' }], tunnel: undefined }), 10);
    const alone = { cells: [{ id: 0, cpus: '0-15' }], physnets: [], tunnel: undefined };
    assert.equal(scoreOn({ ...alone, ...plain, assignments: [] }), 2);
  });

  it('is that it passes with the lowest score if nothing is predicted', () => {
    assert.equal(UNCHECKED.fits && UNCHECKED.score, 0);
    const sharing = needs('a', 100, [], { mayShare: true });
    for (const policy of ['refuse', 'count-check'] as const)
      assert.equal(judgeHost(sharing, node(none), [], policy), UNCHECKED);
    assert.equal(judgeByCount(sharing, node(none), []), UNCHECKED);
    assert.equal(judgeHost(needs('a', 14), node(old), [], 'count-check'), UNCHECKED);
    assert.equal(judgeByCount(needs('a', 14), node(), []), UNCHECKED);
  });

  it('says by which version an unknown one is predicted', () => {
    const newer = preparedHost({ ...REPORT, kubeletVersion: 'v1.39.0' }, true);
    const fitting = judgeHost(needs('a', 4), newer, [], 'nearest');
    assert.ok(fitting.fits);
    assert.equal(`${fitting.cpus}`, '2-5');
    assert.deepEqual(fitting.warnings, ['kubelet v1.39.0 is predicted as 1.38']);
    const refused = judgeHost(needs('a', 16), newer, [], 'nearest');
    assert.ok(!refused.fits);
    assert.match(refused.detail, / \(kubelet v1\.39\.0 is predicted as 1\.38\)$/);
    assert.equal(judgeHost(needs('a', 4), node({ kubeletVersion: 'v1.39.0' }), [], 'nearest'), UNCHECKED);
  });

  const refusals: [string, NodeVerdict | undefined, object][] = [
    [
      'a kubelet that cannot be predicted',
      judgeHost(needs('a', 2), node(old), [], 'refuse'),
      {
        kind: 'unpredictable',
        detail: 'kubelet cannot be predicted: kubelet v1.20.0 is not predicted, only 1.33 to 1.38-alpha',
      },
    ],
    [
      'a host with cores of different sizes',
      judgeHost(needs('a', 2), node({ cores: [...REPORT.cores.slice(0, 7), '14', '15'] }), [], 'refuse'),
      {
        kind: 'uneven-cores',
        detail:
          'core 14 has 1 thread while others have a different number: the kubelet cannot tell whole cores on such a host',
      },
    ],
  ];
  for (const [what, verdict, expected] of refusals)
    it(`is a refusal for ${what}`, () => assert.deepEqual(said(verdict), expected));
});
describe('a predicted refusal by the kubelet', () => {
  const single = { topologyManager: { policy: 'single-numa-node' } };
  const refused = (verdict: NodeVerdict) => {
    assert.ok(!verdict.fits);
    return [verdict.kind, verdict.missing, verdict.detail.replace(/; the kubelet would answer: .+$/, '')];
  };

  it('names the free CPUs of each NUMA node and the most that are together', () => {
    const verdict = judgeHost(needs('a', 8), node({ ...single, assignments: owned('8-9') }), [], 'refuse');
    const text = '8 CPUs needed near each other; free by NUMA node: 0: 6, 1: 6';
    assert.deepEqual(refused(verdict), ['no-common-node', 2, text]);
    assert.ok(!verdict.fits);
    assert.match(verdict.detail, /the kubelet would answer: Resources cannot be allocated with Topology locality$/);
  });

  it('names the required network on whose NUMA nodes too few CPUs are free', () => {
    const busy = { ...single, assignments: owned('2-5') };
    const text = 'interface if-east (physnet east) is on NUMA node 0, where 2 of 4 needed CPUs are free';
    for (const networks of [[physnet('east')], [physnet('west', 'preferred'), physnet('vague'), physnet('east')]]) {
      const verdict = judgeHost(needs('a', 4, networks), node(busy), [], 'refuse');
      assert.deepEqual(refused(verdict), ['network-elsewhere', 2, text]);
    }
  });

  it('is about another resource if enough CPUs are free, or if the kubelet gives none', () => {
    const state = { blocks: 0, group: '0', free: { memory: 2 ** 20 } };
    const memory = {
      topologyManager: { policy: 'none' },
      memoryManager: { policy: 'Static', cells: [0, 1].map((id) => ({ id, memory: 2 ** 20, state })) },
    };
    const short = judgeHost(needs('a', 2), node(memory), [], 'refuse');
    assert.deepEqual(refused(short), ['resources', undefined, 'memory: 1 GiB needed, 2 MiB free']);
    const shared = placeOnFit(needs('a', 100, [], { mayShare: true }), node({ ...memory, ...none }), []);
    assert.equal('kind' in shared && shared.kind, 'resources');
  });
});

const STATIC = ['cannot-split', 'may-not-span', 'larger-than-cells'];
const networks = fc.constantFrom(...['east', 'west', 'east west', 'east bond', 'bond', 'west bond']);
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
        (list, cores, spansCells, policy, kubeletVersion, busy) => {
          const names = list.split(' ');
          const required = names.map((name) => physnet(name));
          const pod = needs('a', cores * 2, required, { spansCells });
          const make = { kubeletVersion, topologyManager: { policy, scope: 'container' } };
          const assignments = busy.map((cpus, i) => ({ podUID: `p${i}`, container: 'c', cpus }));
          const [empty, loaded] = [place(pod, node(make)), place(pod, node({ ...make, assignments }))];
          const reasonOf = (one: typeof empty) => ('kind' in one ? one.kind : '');
          const never = STATIC.includes(reasonOf(empty));
          assert.equal(STATIC.includes(reasonOf(loaded)), never);
          if (never) {
            assert.equal(reasonOf(loaded), reasonOf(empty));
            refused++;
          }
          if (!('containers' in loaded)) return;
          const touched = new Set(loaded.cells);
          const cellOf: Readonly<Record<string, readonly number[]>> = { east: [0], west: [1], bond: [0, 1] };
          for (const name of names) {
            const there = cellOf[name] ?? [];
            const near = [...touched].map((cell) => there.includes(cell));
            assert.ok(spansCells ? near.includes(true) : !near.includes(false), `${name}: ${[...touched]}`);
          }
          if (spansCells && names.includes('east') && names.includes('west')) spanned++;
        },
      ),
      { numRuns: 2000, seed: 7 },
    );
    assert.ok(spanned > 3 && refused > 100, `${spanned} spanned, ${refused} refused`);
  });
});
