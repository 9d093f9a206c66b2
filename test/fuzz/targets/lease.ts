import assert from 'node:assert/strict';
import fc from 'fast-check';
import { ZodError } from 'zod';
import { lease as leaseSchema } from '../../../kube/resources.ts';
import { leaseSeconds, MAX_LEASE_SECONDS, nextRenewTime, parseMicroTime } from '../../../model/lease/timing.ts';
import { almost, withLong } from '../mutation.ts';
import type { Target } from '../target.ts';

const NOW = 1_767_225_600_000_000n;
const time = fc.oneof(
  fc.constantFrom('2026-01-01T00:00:00.000000Z', '2026-01-01T00:00:00Z', '2026-01-01T00:00:00.1+01:00', ''),
  fc.string({ maxLength: 8 }),
);
const text = fc
  .record(
    {
      metadata: fc.record({ name: fc.constant('dpu-worker-0'), labels: fc.constantFrom(null, {}, { a: 'b' }) }),
      spec: fc.option(
        fc.record(
          {
            holderIdentity: fc.option(fc.string({ maxLength: 8 })),
            leaseDurationSeconds: fc.option(fc.oneof(fc.integer(), fc.double())),
            renewTime: fc.option(time),
          },
          { requiredKeys: [] },
        ),
      ),
    },
    { requiredKeys: ['metadata'] },
  )
  .map((object) => JSON.stringify(object));

function read(json: string) {
  const { spec } = leaseSchema.parse(JSON.parse(json));
  return { seconds: leaseSeconds(spec?.leaseDurationSeconds), renewTime: spec?.renewTime };
}

export const lease: Target<string> = {
  name: 'lease',
  about: 'a DPU’s Lease counts for a limited time, and the next renewal is later than any readable one',
  inputs: withLong(
    almost(text, [
      '{"metadata":{"name":"a"},"spec":{"leaseDurationSeconds":40,"renewTime":"2026-01-01T00:00:00.000000Z"}}',
    ]),
    200_000,
    { head: '{"metadata":{"labels":{', piece: (i) => `"a${i}":""`, joint: ',', tail: '}}}' },
    { head: '{"metadata":{"labels":{', piece: (i) => `"a${i}":0`, joint: ',', tail: '}}}' },
    { head: '{"metadata":{"ownerReferences":[', piece: '{}', joint: ',', tail: ']}}' },
    {
      head: '{"metadata":{"ownerReferences":[',
      piece: '{"apiVersion":"","kind":"","name":"","uid":""}',
      joint: ',',
      tail: ']}}',
    },
    { head: '{"metadata":{},"spec":{"renewTime":"', piece: '9', tail: '"}}' },
  ),
  judge(json) {
    try {
      const { seconds, renewTime } = read(json);
      assert.ok(seconds >= 1 && seconds <= MAX_LEASE_SECONDS, `${seconds} s`);
      const before = parseMicroTime(renewTime ?? '');
      if (before !== undefined && before < 4_102_444_800_000_000n) {
        const next = parseMicroTime(nextRenewTime(renewTime, NOW));
        assert.ok(next !== undefined && next > before && next >= NOW);
      }
      return 'accepted';
    } catch (error) {
      assert.ok(error instanceof SyntaxError || error instanceof ZodError, String(error));
      return 'refused';
    }
  },
};
