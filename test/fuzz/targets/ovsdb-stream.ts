import assert from 'node:assert/strict';
import fc from 'fast-check';
import { createJsonStream, JsonStreamError } from '../../../node-agent/open-vswitch/ovsdb/json-stream.ts';
import { vector } from '../../support/vectors.ts';
import { almost, piecesOf, type Stream, streamOf, withLong } from '../mutation.ts';
import { parsedOrRefused, type Target } from '../target.ts';

const recorded = [vector('ovsdb-samples.json'), vector('ovsdb-updates.json')].map((value) => JSON.stringify(value));
const value = fc.oneof(
  fc.array(fc.jsonValue(), { maxLength: 4 }),
  fc.dictionary(fc.string(), fc.jsonValue(), { maxKeys: 4 }),
);
const several = fc.array(value, { maxLength: 5 }).map((values) => values.map((one) => JSON.stringify(one)).join(''));

/** Feeds the bytes in these chunks; the values so far, and whether the stream was refused. */
function feed(bytes: Buffer, cuts: readonly number[]): { readonly values: unknown[]; readonly refused: boolean } {
  const read = createJsonStream();
  const values: unknown[] = [];
  for (const piece of piecesOf(bytes, cuts)) {
    const parsed = parsedOrRefused(() => read(piece), JsonStreamError);
    if (parsed === undefined) return { values, refused: true };
    values.push(...parsed.value);
  }
  return { values, refused: false };
}

export const ovsdbStream: Target<Stream> = {
  name: 'ovsdb-stream',
  about: 'OVSDB’s stream gives the values of JSON.parse, wherever it is cut',
  inputs: streamOf(
    withLong(
      almost(several, recorded),
      200_000,
      { piece: '{}' },
      { head: '[', piece: '[]', joint: ',', tail: ']' },
      { head: '["', piece: '\\\\', tail: '"]' },
      { piece: '[', closing: ']' },
      { head: '{}', piece: ' ', tail: '{}' },
    ),
  ),
  judge({ text, cuts }) {
    const bytes = Buffer.from(text);
    const { values, refused } = feed(bytes, cuts);
    // Byte by byte shows all readable values: a refused chunk keeps its completed values.
    const alone = feed(
      bytes,
      Array.from({ length: Math.min(bytes.length, 400) }, (_, i) => (i + 0.5) / bytes.length),
    );
    assert.equal(alone.refused, refused);
    if (!refused) {
      assert.deepEqual(alone.values, values);
      assert.equal(values.map((one) => JSON.stringify(one)).join('').length > 0, values.length > 0);
    }
    return refused ? 'refused' : 'accepted';
  },
};
