import assert from 'node:assert/strict';
import fc from 'fast-check';
import { ProtocolError, type Question, QuestionReader } from '../../../node-agent/gate/protocol.ts';
import { JsonStream } from '../../../node-agent/open-vswitch/ovsdb/json-stream.ts';
import { vector } from '../../support/vectors.ts';
import { parsedOrRefused, type Target } from '../engine.ts';
import { almost, piecesOf, type Stream, streamOf, withLong } from '../mutation.ts';

const recorded = [vector('ovsdb-samples.json'), vector('ovsdb-updates.json')].map((value) => JSON.stringify(value));
const value = fc.oneof(
  fc.array(fc.jsonValue(), { maxLength: 4 }),
  fc.dictionary(fc.string(), fc.jsonValue(), { maxKeys: 4 }),
);
const several = fc
  .array(value, { maxLength: 5 })
  .map((values) => values.map((value) => JSON.stringify(value)).join(''));
function feed(bytes: Buffer, cuts: readonly number[]): { readonly values: unknown[]; readonly refused: boolean } {
  const stream = new JsonStream();
  const values: unknown[] = [];
  for (const piece of piecesOf(bytes, cuts)) {
    const parsed = parsedOrRefused(() => stream.read(piece), 'JsonStreamError');
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
      assert.equal(values.map((value) => JSON.stringify(value)).join('').length > 0, values.length > 0);
    }
    return refused ? 'refused' : 'accepted';
  },
};

const question = fc
  .tuple(fc.constantFrom('ADD', 'STATUS'), fc.string(), fc.json({ maxDepth: 2 }))
  .map(([verb, value, conf]) => {
    const environment = `CNI_ARGS=${value.replaceAll('\0', '')}\0`;
    const [first, second] = [Buffer.byteLength(environment), Buffer.byteLength(conf)];
    return `plumbline-gate/1 ${verb} ${first} ${second}\n${environment}${conf}`;
  });
function feedQuestion(bytes: Buffer, cuts: readonly number[]): Question | undefined {
  const reader = new QuestionReader();
  for (const piece of piecesOf(bytes, cuts)) {
    const reading = reader.read(piece);
    assert.ok(reader.size <= 128 + 64 * 1024 + 1024 * 1024 + bytes.length);
    if (reading !== undefined) return reading;
  }
  return undefined;
}
export const gateQuestion: Target<Stream> = {
  name: 'gate-question',
  about: 'bytes on the agent’s socket give the same request or refusal, wherever they are cut',
  inputs: streamOf(
    withLong(
      almost(question, ['plumbline-gate/1 ADD 0 2\n{}']),
      200_000,
      { head: 'plumbline-gate/1 ADD 60000 0\n', piece: (i) => `${i}=\0` },
      { head: 'plumbline-gate/1 ADD 60000 9\n', piece: '=\0' },
      { head: 'plumbline-gate/1 ADD 9 190000\n', piece: 'a' },
    ),
  ),
  judge({ text, cuts }) {
    const bytes = Buffer.from(text);
    const parsed = parsedOrRefused(() => feedQuestion(bytes, cuts), ProtocolError);
    const whole = parsedOrRefused(() => feedQuestion(bytes, []), ProtocolError);
    assert.deepEqual(parsed?.value, whole?.value);
    assert.equal(parsed === undefined, whole === undefined);
    return parsed?.value === undefined ? 'refused' : 'accepted';
  },
};
