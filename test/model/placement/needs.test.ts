import assert from 'node:assert/strict';
import { parseMask } from '../../../model/cpu-mask/mask.ts';
import { keepsWholeCores, needsKey, withAssignments, withoutPods } from '../../../model/placement/needs.ts';
import { needs, node, physnet, TUNNEL } from './fixture.ts';

const owned = (podUID: string, cpus: string) => ({ podUID, container: 'c', cpus });
const old = { kubeletVersion: 'v1.20.0' };

describe('a node that is prepared from its report', () => {
  it('has what is reported', () => {
    const told = node({
      pmdCPUs: '4-5',
      pinsVMs: false,
      cpuManager: { policy: 'none', options: { 'full-pcpus-only': 'false' } },
      assignments: [owned('a', '2-3'), owned('b', '8-9'), owned('b', '12')],
    });
    assert.deepEqual(
      [told.alignment, told.pinsVMs, `${told.polled}`, told.sharedOnly, told.wholeCoresOnly],
      ['best-effort', false, '4-5', true, false],
    );
    assert.deepEqual([`${told.owned}`, [...told.owners]], ['2-3,8-9,12', ['a', 'b']]);
    assert.deepEqual([...told.networks.physnets].map(String), ['east,0', 'west,1', 'bond,0-1', 'vague,']);
    assert.equal(`${told.networks.tunnel}`, '1');
  });

  it('is the same with other pods, and without some', () => {
    for (const changes of [{}, old]) {
      const before = node({ ...changes, assignments: [owned('a', '2-3'), owned('b', '8-9')] });
      const after = withAssignments(before, [owned('c', '4-7')]);
      assert.deepEqual([`${after.owned}`, [...after.owners], after.host === before.host], ['4-7', ['c'], true]);
      assert.equal(after.state === undefined, changes === old);
      if (after.state) assert.equal(`${after.state.defaultSet}`, '0-3,8-15');
      const without = withoutPods(before, new Set(['b', 'unknown']));
      assert.deepEqual(
        [`${without.owned}`, [...without.owners]],
        changes === old ? ['2-3,8-9', ['a', 'b']] : ['2-3', ['a']],
      );
      if (without.state) assert.equal(`${without.state.defaultSet}`, '0-1,4-15');
    }
  });
});

describe('needs of a pod', () => {
  it('have a key that differs in whatever may change the verdict, and not in the uid', () => {
    const mask = { mask: parseMask('1:2'), fixMismatch: false };
    const different = [
      needs('a', 2),
      needs('a', 4),
      needs('a', 2, [], {}, 2),
      needs('a', 2, [physnet('east')]),
      needs('a', 2, [physnet('west')]),
      needs('a', 2, [physnet('east', 'preferred')]),
      needs('a', 2, [physnet('west', 'preferred')]),
      needs('a', 2, [TUNNEL]),
      needs('a', 2, [], { wholeCores: true }),
      needs('a', 2, [], { spansCells: true }),
      needs('a', 2, [], { mayShare: true }),
      needs('a', 2, [], { mask }),
      needs('a', 2, [], { mask: { ...mask, fixMismatch: true } }),
    ];
    assert.equal(new Set(different.map(needsKey)).size, different.length);
    assert.equal(
      needsKey(needs('a', 2)),
      needsKey(needs('b', 2, [], { wholeCores: false, spansCells: false, mayShare: false })),
    );
    const named = { ...physnet('east'), name: 'another interface' };
    assert.equal(needsKey(needs('a', 2, [physnet('east')])), needsKey(needs('b', 2, [named])));
    assert.equal(needsKey(needs('a', 2, [], { key: 'computed' })), 'computed');
  });

  it('have whole cores on larger cores only if the pod is padded to them', () => {
    const four = node({ cores: ['0-3', '4-7', '8-11', '12-15'], reserved: '0-3' });
    const one = node({ cores: Array.from({ length: 16 }, (_, id) => `${id}`) });
    const keeps = (cpus: number, host = four, init = 0) =>
      keepsWholeCores(needs('a', cpus, [], { wholeCores: true }, init), host);
    assert.deepEqual([keeps(4), keeps(6), keeps(8), keeps(8, four, 6)], [true, false, true, true]);
    assert.deepEqual([keeps(6, node()), keeps(3, node()), keeps(3, one)], [true, true, true]);
    const mixed = needs('a', 8, [], { wholeCores: true });
    const [smaller] = needs('a', 6).request.containers;
    assert.ok(smaller);
    const request = { ...mixed.request, containers: [...mixed.request.containers, smaller] };
    assert.equal(keepsWholeCores({ ...mixed, request }, four), false, 'each container needs whole cores');
    assert.equal(keepsWholeCores(needs('a', 4), four), false);
  });
});
