import assert from 'node:assert/strict';
import { GROUPS } from '../../bench/groups.ts';

describe('groups of measurements', () => {
  it('have measurements, and names of their own', async () => {
    for (const { names, load } of GROUPS) {
      const benches = await load();
      assert.ok(benches.length > 0 && benches.every((bench) => typeof bench === 'function'), names.join(' '));
    }
    const names = GROUPS.flatMap((group) => group.names);
    assert.equal(new Set(names).size, names.length);
  }).timeout(60_000);
});
