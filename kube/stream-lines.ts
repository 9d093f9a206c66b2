import { KubeError } from './client.ts';

const NEWLINE = 0x0a;

const textOf = ({ buffer, byteOffset, length }: Uint8Array) => Buffer.from(buffer, byteOffset, length).toString('utf8');

/**
 * Splits a stream into lines, reading each byte once; drops an incomplete last line. @param longest bytes @throws
 * KubeError `TooLarge`
 */
export async function* lines(stream: AsyncIterable<Uint8Array>, longest: number): AsyncGenerator<string> {
  let parts: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of stream) {
    let from = 0;
    for (let end = chunk.indexOf(NEWLINE); end >= 0; end = chunk.indexOf(NEWLINE, from)) {
      // Most lines are in one chunk and need no copy.
      const last = chunk.subarray(from, end);
      const line = parts.length === 0 ? textOf(last) : textOf(Buffer.concat([...parts, last]));
      [parts, size, from] = [[], 0, end + 1];
      if (line !== '') yield line;
    }
    if (from < chunk.length) parts.push(chunk.subarray(from));
    size += chunk.length - from;
    if (size > longest) throw new KubeError(0, 'TooLarge', `a watch event is larger than ${longest} bytes`);
  }
}
