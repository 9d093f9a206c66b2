import assert from 'node:assert/strict';
import { GROUPS } from '../../bench/groups.ts';
import { isDescribed } from '../../bench/table.ts';

describe('the table of measurements', () => {
  it('has a text for each measurement, without which --write would fail after all of them', () => {
    const names = GROUPS.flatMap((group) => group.names);
    assert.deepEqual(
      names.filter((name) => !isDescribed(name)),
      [],
    );
  });
});
