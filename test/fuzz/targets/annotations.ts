import assert from 'node:assert/strict';
import fc from 'fast-check';
import { ParseError } from '../../../model/errors.ts';
import { AFFINITIES, parseAffinities } from '../../../model/networks/interfaces.ts';
import { formatPreferences, NO_PREFERENCES, parsePreferences } from '../../../model/placement/preferences.ts';
import { almost, withLong } from '../mutation.ts';
import { parsedOrRefused, type Target } from '../target.ts';

const name = fc.oneof(fc.stringMatching(/^[a-z][-a-z0-9]{0,8}$/), fc.string({ maxLength: 4 }));
const wishes = fc
  .dictionary(name, fc.constantFrom(...AFFINITIES, ...AFFINITIES, 'other', 1), { maxKeys: 5 })
  .map((content) => JSON.stringify(content));

export const affinity: Target<string> = {
  name: 'numa-affinity',
  about: 'the affinity annotation gives the names and affinities that JSON.parse finds, or is refused',
  inputs: withLong(
    almost(wishes, ['{"dpdk-east":"required","mgmt":"none"}', '']),
    16_000,
    { head: '{', piece: (i) => `"${i}":"none"`, joint: ',', tail: '}' },
    { head: '{', piece: '"a":"none"', joint: ',', tail: '}' },
    { head: '{"', piece: '\\u0061', tail: '":"none"}' },
    { piece: '{"a":', closing: '}' },
  ),
  judge(text) {
    const parsed = parsedOrRefused(() => parseAffinities(text), ParseError);
    if (parsed === undefined) return 'refused';
    const sent = text.trim() === '' ? {} : (JSON.parse(text) as Record<string, string>);
    assert.deepEqual([...parsed.value], Object.entries(sent));
    assert.ok([...parsed.value.values()].every((value) => AFFINITIES.includes(value)));
    return 'accepted';
  },
};

const placed = fc
  .record({ preferred: fc.array(name, { maxLength: 5 }), spansCells: fc.boolean() }, { requiredKeys: [] })
  .map((content) => JSON.stringify(content));

export const placement: Target<string> = {
  name: 'placement',
  about: 'the placement annotation never causes an error, and survives writing and reading',
  inputs: withLong(
    almost(placed, ['{"preferred":["physnet.plumbline.dev/east"],"spansCells":true}']),
    200_000,
    ...['"a"', '""', '0', '{}'].map((piece) => ({ head: '{"preferred":[', piece, joint: ',', tail: ']}' })),
    { head: '{', piece: (i) => `"${i}":[]`, joint: ',', tail: '}' },
    { piece: '[', closing: ']' },
  ),
  judge(text) {
    const read = parsePreferences(text);
    assert.deepEqual(parsePreferences(formatPreferences(read)), read);
    assert.ok(read.preferred.length <= 64);
    return read === NO_PREFERENCES ? 'refused' : 'accepted';
  },
};
