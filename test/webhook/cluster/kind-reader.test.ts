import assert from 'node:assert/strict';
import { createKindReader } from '../../../webhook/cluster/kind-reader.ts';
import { REPORT } from '../../model/placement/fixture.ts';

describe('the kind of a node', () => {
  it('is read from its report, once for equal nodes', () => {
    const reader = createKindReader();
    const read = reader.readRaw(REPORT);
    assert.ok('kind' in read);
    assert.deepEqual([read.kind?.threadsPerCore, read.kind?.fullPcpusOnly], [2, true]);
    assert.equal(reader.readRaw({ ...REPORT, assignments: [{ podUID: 'x', container: 'c', cpus: '2-3' }] }), read);
    assert.notEqual(reader.readRaw({ ...REPORT, reserved: '0' }), read);
  });

  for (const [what, status] of [
    ['an invalid report', { ...REPORT, cells: 'many' }],
    ['a missing report', undefined],
    ['a report in a later format', { ...REPORT, format: 2 }],
    [
      'a report that has a CPU on two NUMA nodes',
      {
        ...REPORT,
        cells: [
          { id: 0, cpus: '0-8' },
          { id: 1, cpus: '8-15' },
        ],
      },
    ],
  ] as const) {
    it(`is not read from ${what}: the fault is reported`, () => {
      const read = createKindReader().readRaw(status);
      assert.ok(!('kind' in read) && read.message.length > 0, JSON.stringify(read));
    });
  }
});
