const NEWLINE = 10;

/**
 * Splits a stream into lines of limited length. It reads and copies each byte once.
 * @param longest maximum bytes of a line
 */
export function createLineReader(longest: number) {
  let held: Buffer = Buffer.alloc(0);
  let size = 0;

  const take = (part: Buffer) => {
    const needed = size + part.length;
    if (needed > longest) throw new RangeError(`a line of more than ${longest} bytes`);
    if (needed > held.length) {
      const larger = Buffer.allocUnsafe(Math.min(longest, Math.max(needed, held.length * 2)));
      held.copy(larger, 0, 0, size);
      held = larger;
    }
    size += part.copy(held, size);
  };

  return {
    /** @returns the lines that the chunk completes @throws RangeError if one is too long; the stream is then unusable */
    read(chunk: Buffer) {
      const lines: string[] = [];
      let begin = 0;
      for (let end = chunk.indexOf(NEWLINE); end >= 0; end = chunk.indexOf(NEWLINE, begin)) {
        take(chunk.subarray(begin, end));
        lines.push(held.toString('utf8', 0, size));
        size = 0;
        begin = end + 1;
      }
      take(chunk.subarray(begin));
      return lines;
    },
  };
}
