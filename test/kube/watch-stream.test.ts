import assert from 'node:assert/strict';
import { lines } from '../../kube/watch-stream.ts';
import { processorTimeOf } from '../support/processor-time.ts';

describe('lines of a stream', () => {
  const chunks = async function* (text: string, size: number) {
    const bytes = Buffer.from(text);
    for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size);
  };
  const all = async (stream: AsyncIterable<Uint8Array>, longest = 1000) => {
    const keys: string[] = [];
    for await (const line of lines(stream, longest)) keys.push(line);
    return keys;
  };

  it('are joined across chunks, including characters of several bytes', async () => {
    for (const size of [1, 2, 3, 7, 100]) {
      assert.deepEqual(await all(chunks('{"a":"ä€"}\n\n{"b":1}\nrest', size)), ['{"a":"ä€"}', '{"b":1}']);
    }
  });
  it('are counted from their own start, and one byte above the limit is refused', async () => {
    const parts = async function* (...texts: string[]) {
      for (const part of texts) yield Buffer.from(part);
    };
    assert.deepEqual(await all(parts('abcdefgh\nab', 'cd\n'), 4), ['abcdefgh', 'abcd']);
    await assert.rejects(all(parts('abcdefgh\nab', 'cde'), 4), { status: 0, reason: 'TooLarge' });
  });
  it('take time in proportion to their length, for any number of chunks', async () => {
    const read = (length: number) => processorTimeOf(() => all(chunks(`${'x'.repeat(length)}\n`, 16), 1e9));
    await read(100_000);
    const [once, tenfold] = [await read(400_000), await read(4_000_000)];
    assert.ok(tenfold < 40 * Math.max(once, 5), `${once} ms and ${tenfold} ms`);
  });
});
