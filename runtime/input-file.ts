import { closeSync, openSync, readSync } from 'node:fs';

const FIRST_BUFFER_BYTES = 64 * 1024;
const STANDARD_INPUT = 0;
/** Bytes of the largest file with certificates or a token. */
export const MAX_CREDENTIAL_BYTES = 1024 * 1024;

/** Reads a file (`-`: standard input), pipe or device up to `most` bytes. @throws Error, also from the system */
export function readInput(path: string, most: number): Buffer {
  const source = path === '-' ? STANDARD_INPUT : openSync(path, 'r');
  try {
    let buffer = Buffer.allocUnsafe(FIRST_BUFFER_BYTES);
    for (let size = 0; ; ) {
      const count = readSync(source, buffer, size, buffer.length - size, null);
      if (count === 0) return buffer.subarray(0, size);
      size += count;
      if (size > most) throw new Error(`it is larger than ${most} bytes`);
      if (size === buffer.length) buffer = Buffer.concat([buffer], size * 2);
    }
  } finally {
    if (source !== STANDARD_INPUT) closeSync(source);
  }
}
