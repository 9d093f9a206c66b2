import assert from 'node:assert/strict';
import fc from 'fast-check';
import { byName } from '../../cli/support/name-order.ts';

describe('cli: the order of names', () => {
  it('puts worker-2 before worker-10, as people do', () => {
    const names = ['worker-10', 'worker-2', 'worker-1.rack-12', 'worker-1.rack-2', 'a', 'worker'];
    assert.deepEqual(names.sort(byName((name) => name)), [
      'a',
      'worker',
      'worker-1.rack-2',
      'worker-1.rack-12',
      'worker-2',
      'worker-10',
    ]);
  });

  it('equals that of a numeric collator for every name that Kubernetes allows', () => {
    const part = fc.oneof(fc.constantFrom('a', 'z', '-', '.', '0', '00', 'worker-'), fc.nat().map(String));
    const name = fc.array(part, { maxLength: 8 }).map((parts) => parts.join(''));
    const { compare } = new Intl.Collator('en', { numeric: true });
    const order = byName<string>((one) => one);
    fc.assert(
      fc.property(name, name, (a, b) => assert.equal(order(a, b), compare(a, b))),
      { numRuns: 5000 },
    );
  });
});
