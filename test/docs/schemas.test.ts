import assert from 'node:assert/strict';
import { OUTPUT_SCHEMAS } from '../support/output-schema.ts';

describe('the schemas of -o json', () => {
  it('exist for each command, and accept no unknown field', () => {
    const commands = [
      'doctor',
      'explain',
      'interference',
      'ovs-status',
      'simulate',
      'simulate-without',
      'status',
      'top',
      'topology',
      'verify',
      'vm-status',
    ];
    assert.deepEqual([...OUTPUT_SCHEMAS.keys()].sort(), commands);
    for (const [name, schema] of OUTPUT_SCHEMAS) assert.equal(schema.safeParse({ unknown: 1 }).success, false, name);
  });

  it('name a field that is wrong', () => {
    const { error } = OUTPUT_SCHEMAS.get('verify')!.safeParse({ vms: [] });
    assert.ok((error?.issues.length ?? 0) > 0);
  });
});
