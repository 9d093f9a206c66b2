import assert from 'node:assert/strict';
import { TenantBudget } from '../../runtime/tenant-budget.ts';

/** A value of about so many bytes. */
const bytes = (count: number) => 'x'.repeat(count / 2);
const MIB = 1024 * 1024;
describe('a budget of memory for tenants', () => {
  /** Puts entries of 64 KiB until one does not fit. @returns the MiB of the tenant */
  const fill = (budget: TenantBudget, tenant: string) => {
    let count = 0;
    while (budget.put(tenant, `entry-${count}`, bytes(64 * 1024))) count++;
    return Math.round(count / 16);
  };

  it('gives one tenant half of the memory, and each further one half of the rest', () => {
    const budget = new TenantBudget(16 * MIB);
    assert.deepEqual([fill(budget, 'a'), fill(budget, 'b'), fill(budget, 'c')], [8, 4, 2]);
    assert.ok(budget.bytes < 16 * MIB);
  });

  it('has room for a tenant with little, whatever a thousand others want', () => {
    const budget = new TenantBudget(16 * MIB);
    for (let i = 0; i < 1000; i++) fill(budget, `greedy-${i}`);
    assert.ok(budget.put('little', 'vm', bytes(2000)));
  });

  it('never takes what a tenant has, and allows changes that do not grow', () => {
    const budget = new TenantBudget(16 * MIB);
    assert.ok(budget.put('a', 'vm', bytes(7 * MIB)));
    fill(budget, 'greedy');
    assert.ok(budget.put('a', 'vm', bytes(7 * MIB)));
    assert.equal(budget.put('a', 'vm', bytes(9 * MIB)), false);
  });

  it('leaves an entry that grows too large as it was, and keeps a small one that must be kept', () => {
    const budget = new TenantBudget(16 * MIB);
    fill(budget, 'a');
    const before = budget.bytes;
    assert.equal(budget.put('a', 'entry-0', bytes(MIB)), false);
    assert.equal(budget.bytes, before);
    budget.keep('a', 'entry-0', bytes(65 * 1024));
    assert.equal(budget.bytes, before + 1024);
  });

  it('has all its memory again when the entries have gone', () => {
    const budget = new TenantBudget(16 * MIB);
    budget.put('a', 'vm', bytes(MIB));
    budget.put('a', 'vm', bytes(2 * MIB));
    assert.equal(budget.put('a', 'vm', bytes(20 * MIB)), false);
    budget.put('a', 'other', bytes(MIB));
    for (const key of ['vm', 'other', 'unknown']) budget.delete('a', key);
    assert.equal(budget.bytes, 0);
  });

  for (const [label, value] of Object.entries({
    texts: Array.from({ length: 64 }, () => bytes(16 * 1024)),
    'keys of an object': Object.fromEntries(Array.from({ length: 64 }, (_, i) => [`${i}${bytes(32 * 1024)}`, ''])),
    'a map': new Map([['key', bytes(MIB)]]),
    'a set': new Set([bytes(MIB)]),
    'many small objects': Array.from({ length: 33_000 }, () => ({})),
    'an array of bytes': new Uint8Array(MIB),
  })) {
    it(`counts ${label}`, () => {
      const budget = new TenantBudget(16 * MIB);
      budget.put('a', 'vm', value);
      assert.ok(budget.bytes >= MIB, String(budget.bytes));
    });
  }
});
