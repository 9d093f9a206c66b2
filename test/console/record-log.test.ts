import assert from 'node:assert/strict';
import fc from 'fast-check';
import { RecordLog } from '../../console/server/record-log.ts';

/** The view after records: the last record of each object. */
function applied(view: Map<string, string>, records: Iterable<{ readonly json: string }>): Map<string, string> {
  for (const { json } of records) {
    const [key = '', value] = JSON.parse(json) as [string, string?];
    if (value === undefined) view.delete(key);
    else view.set(key, value);
  }
  return view;
}

const json = (key: string, value?: number) => JSON.stringify(value === undefined ? [key] : [key, String(value)]);

describe('the record log', () => {
  const step = fc.tuple(fc.constantFrom('a', 'b', 'c', 'd', 'e', 'f'), fc.option(fc.nat(3), { nil: undefined }));

  it('updates a viewer that left at any time, with at most one record for each object', () => {
    fc.assert(
      fc.property(
        fc.array(step, { maxLength: 60 }),
        fc.nat(60),
        fc.integer({ min: 1, max: 4 }),
        (steps, leaves, ends) => {
          const log = new RecordLog(ends);
          const truth = new Map<string, string>();
          const viewer = new Map<string, string>();
          let seen = 0;
          steps.forEach(([key, value], at) => {
            if (at === leaves) {
              applied(viewer, log.after(0));
              seen = log.last;
            }
            if (value === undefined) {
              truth.delete(key);
              log.end(key, json(key));
            } else {
              truth.set(key, String(value));
              log.put(key, json(key, value));
            }
          });
          const records = [...log.after(log.covers(seen) ? seen : 0)];
          const back = applied(log.covers(seen) ? viewer : new Map(), records);
          assert.deepEqual(new Map([...back].sort()), new Map([...truth].sort()));
          assert.ok(records.length <= 6);
          assert.deepEqual(
            records.map(({ seq }) => seq),
            records.map(({ seq }) => seq).sort((a, b) => a - b),
          );
          assert.equal(log.size, truth.size);
        },
      ),
    );
  });

  it('ignores an unchanged record', () => {
    const log = new RecordLog();
    log.put('a', json('a', 1));
    log.put('a', json('a', 1));
    log.end('b', json('b'));
    assert.equal(log.last, 1);
  });

  it('does not claim to be complete for a viewer from before the oldest remembered end', () => {
    const log = new RecordLog(1);
    for (const key of ['a', 'b', 'c']) log.put(key, json(key, 1));
    const seen = log.last;
    log.end('a', json('a'));
    assert.ok(log.covers(seen));
    log.end('b', json('b'));
    assert.ok(!log.covers(seen));
    assert.ok(log.covers(0));
    assert.ok(!log.covers(log.last + 1));
  });
});
