import { gzipSync } from 'node:zlib';

export interface ArchiveFile {
  readonly name: string;
  readonly content: string;
}

const BLOCK_BYTES = 512;

/** A gzipped tar archive (POSIX ustar) with one folder. @param seconds since 1970, the time of all files */
export function tarArchive(folder: string, files: readonly ArchiveFile[], seconds: number): Buffer {
  const blocks = files.flatMap(({ name, content }) => {
    const body = Buffer.from(content);
    const padding = Buffer.alloc((BLOCK_BYTES - (body.length % BLOCK_BYTES)) % BLOCK_BYTES);
    return [headerOf(`${folder}/${name}`, body.length, seconds), body, padding];
  });
  return gzipSync(Buffer.concat([...blocks, Buffer.alloc(2 * BLOCK_BYTES)]));
}

function headerOf(name: string, size: number, seconds: number): Buffer {
  if (Buffer.byteLength(name) > 100) throw new RangeError(`the name ${name} is too long for an archive`);
  const header = Buffer.alloc(BLOCK_BYTES);
  const put = (text: string, at: number) => header.set(Buffer.from(text), at);
  const octal = (value: number, digits: number) => `${value.toString(8).padStart(digits, '0')}\0`;
  put(name, 0);
  put(octal(0o600, 7), 100);
  put(octal(0, 7), 108);
  put(octal(0, 7), 116);
  put(octal(size, 11), 124);
  put(octal(Math.floor(seconds), 11), 136);
  // The checksum counts as blanks.
  put('        ', 148);
  put('0', 156);
  put('ustar\u000000', 257);
  const sum = header.reduce((total, byte) => total + byte, 0);
  put(`${sum.toString(8).padStart(6, '0')}\0 `, 148);
  return header;
}
