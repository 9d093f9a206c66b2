import assert from 'node:assert/strict';
import fc from 'fast-check';
import { createQuestionReader, ProtocolError, type Question } from '../../../node-agent/gate/protocol.ts';
import { almost, piecesOf, type Stream, streamOf, withLong } from '../mutation.ts';
import { parsedOrRefused, type Target } from '../target.ts';

const question = fc
  .tuple(fc.constantFrom('ADD', 'STATUS'), fc.string(), fc.json({ maxDepth: 2 }))
  .map(([verb, value, conf]) => {
    const environment = `CNI_ARGS=${value.replaceAll('\0', '')}\0`;
    const [first, second] = [Buffer.byteLength(environment), Buffer.byteLength(conf)];
    return `plumbline-gate/1 ${verb} ${first} ${second}\n${environment}${conf}`;
  });

/** Feeds the bytes in these pieces; undefined if they are not a complete request. */
function feed(bytes: Buffer, cuts: readonly number[]): Question | undefined {
  const reader = createQuestionReader();
  for (const piece of piecesOf(bytes, cuts)) {
    const found = reader.read(piece);
    assert.ok(reader.size <= 128 + 64 * 1024 + 1024 * 1024 + bytes.length);
    if (found !== undefined) return found;
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
    const parsed = parsedOrRefused(() => feed(bytes, cuts), ProtocolError);
    const whole = parsedOrRefused(() => feed(bytes, []), ProtocolError);
    assert.deepEqual(parsed?.value, whole?.value);
    assert.equal(parsed === undefined, whole === undefined);
    return parsed?.value === undefined ? 'refused' : 'accepted';
  },
};
