import assert from 'node:assert/strict';
import { areSameDomains, domainsOf } from '../../../scheduler-plugin/cluster/node-domains.ts';

const ZONE = 'topology.kubernetes.io/zone';
const RACK = 'topology.kubernetes.io/rack';

describe('the topology domains of a node', () => {
  it('are its topology labels, and no others', () => {
    assert.deepEqual([...domainsOf({ [ZONE]: 'a', 'kubernetes.io/hostname': 'n' })], [[ZONE, 'a']]);
    assert.equal(domainsOf(undefined).size, 0);
  });

  it('have at most 1,024 characters together', () => {
    assert.equal(domainsOf({ [ZONE]: 'x'.repeat(1024) }).size, 0);
    assert.equal(domainsOf({ [ZONE]: 'x'.repeat(1023 - ZONE.length) }).size, 1);
  });

  const CASES: readonly [what: string, other: Readonly<Record<string, string>>, same: boolean][] = [
    ['the same in another order', { [RACK]: '1', [ZONE]: 'a' }, true],
    ['another value', { [ZONE]: 'b', [RACK]: '1' }, false],
    ['one label fewer', { [ZONE]: 'a' }, false],
    ['another key', { [ZONE]: 'a', 'topology.kubernetes.io/row': '1' }, false],
  ];
  for (const [what, other, same] of CASES) {
    it(`${what}: ${same ? 'equal' : 'different'}`, () => {
      assert.equal(areSameDomains(domainsOf({ [ZONE]: 'a', [RACK]: '1' }), domainsOf(other)), same);
    });
  }
});
