import { closeSync, openSync, readSync } from 'node:fs';

/** Bytes of one read. */
const CHUNK = 64 * 1024;
const STANDARD_INPUT = 0;

/**
 * Reads a file with a size limit. It may be a pipe, as in `--kubeconfig <(sops -d …)`, whose size is only known at its
 * end, or a device without an end.
 * @param path `-` for standard input
 * @param most bytes
 * @throws Error if it is larger
 * @throws a system error
 */
export function readInput(path: string, most: number): Buffer {
  const source = path === '-' ? STANDARD_INPUT : openSync(path, 'r');
  try {
    const chunks: Buffer[] = [];
    for (let size = 0; ; ) {
      const chunk = Buffer.allocUnsafe(CHUNK);
      const count = readSync(source, chunk);
      if (count === 0) return Buffer.concat(chunks);
      chunks.push(chunk.subarray(0, count));
      size += count;
      if (size > most) throw new Error(`it is larger than ${most} bytes`);
    }
  } finally {
    if (source !== STANDARD_INPUT) closeSync(source);
  }
}
