import assert from 'node:assert/strict';
import fc from 'fast-check';
import { ChangeLog } from '../../../scheduler-plugin/cluster/change-log.ts';

describe('the log of changes', () => {
  it('returns the changes since a given count, or undefined if they are no longer kept', () => {
    const size = 8;
    fc.assert(
      fc.property(fc.array(fc.nat(5), { maxLength: 40 }), fc.nat(40), (ids, since) => {
        const log = new ChangeLog(size);
        for (const id of ids) log.add(id);
        assert.equal(log.count, ids.length);
        if (since > ids.length) return;
        const expected = ids.length - since > size ? undefined : ids.slice(since).sort();
        assert.deepEqual(log.since(since) && [...log.since(since)!].sort(), expected);
        assert.equal(new ChangeLog(size).since(Number.NEGATIVE_INFINITY), undefined);
      }),
    );
  });
});
