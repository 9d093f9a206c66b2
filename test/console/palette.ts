import { writeFile } from 'node:fs/promises';
import { crc32, deflateSync, inflateSync } from 'node:zlib';

const SIGNATURE = Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]);
const COLOURS = 256;

/**
 * Writes a screenshot (PNG, 8 bits, RGB or RGBA without transparency) with a palette, which is a third as large.
 * Colours beyond 256, from smoothed letters, become the nearest of the most frequent ones.
 */
export async function shrinkPng(png: Buffer, file: string): Promise<void> {
  const { width, height, pixels } = decode(png);
  const counts = new Map<number, number>();
  for (const pixel of pixels) counts.set(pixel, (counts.get(pixel) ?? 0) + 1);
  const palette = [...counts]
    .sort(([, a], [, b]) => b - a)
    .slice(0, COLOURS)
    .map(([colour]) => colour);
  const places = new Map(palette.map((colour, place) => [colour, place]));
  const placeOf = (colour: number): number => {
    const known = places.get(colour) ?? nearest(palette, colour);
    places.set(colour, known);
    return known;
  };
  const rows = Buffer.alloc((width + 1) * height);
  pixels.forEach((colour, at) => {
    rows[Math.floor(at / width) * (width + 1) + 1 + (at % width)] = placeOf(colour);
  });
  const header = Buffer.alloc(13);
  header.writeUInt32BE(width, 0);
  header.writeUInt32BE(height, 4);
  header.set([8, 3, 0, 0, 0], 8);
  const colours = Buffer.from(palette.flatMap((colour) => [colour >> 16, (colour >> 8) & 255, colour & 255]));
  const chunks = [
    chunk('IHDR', header),
    chunk('PLTE', colours),
    chunk('IDAT', deflateSync(rows, { level: 9 })),
    chunk('IEND', Buffer.alloc(0)),
  ];
  await writeFile(file, Buffer.concat([SIGNATURE, ...chunks]));
}

function nearest(palette: readonly number[], colour: number): number {
  let best = 0;
  let least = Number.POSITIVE_INFINITY;
  for (const [place, one] of palette.entries()) {
    const [r, g, b] = [
      (one >> 16) - (colour >> 16),
      ((one >> 8) & 255) - ((colour >> 8) & 255),
      (one & 255) - (colour & 255),
    ];
    const distance = 2 * r * r + 4 * g * g + 3 * b * b;
    if (distance < least) [best, least] = [place, distance];
  }
  return best;
}

function chunk(type: string, data: Buffer): Buffer {
  const body = Buffer.concat([Buffer.from(type, 'latin1'), data]);
  const [length, sum] = [Buffer.alloc(4), Buffer.alloc(4)];
  length.writeUInt32BE(data.length);
  sum.writeUInt32BE(crc32(body) >>> 0);
  return Buffer.concat([length, body, sum]);
}

/** Source: PNG specification, sections 5 and 9. */
function decode(png: Buffer): { width: number; height: number; pixels: Uint32Array } {
  const data: Buffer[] = [];
  let [width, height, bytes] = [0, 0, 0];
  for (let at = SIGNATURE.length; at < png.length; ) {
    const length = png.readUInt32BE(at);
    const type = png.toString('latin1', at + 4, at + 8);
    const body = png.subarray(at + 8, at + 8 + length);
    if (type === 'IHDR') {
      [width, height, bytes] = [body.readUInt32BE(0), body.readUInt32BE(4), body[9] === 6 ? 4 : 3];
    } else if (type === 'IDAT') data.push(body);
    at += length + 12;
  }
  const raw = inflateSync(Buffer.concat(data));
  const line = width * bytes;
  const pixels = new Uint32Array(width * height);
  let before = Buffer.alloc(line);
  for (let y = 0; y < height; y++) {
    const filter = raw[y * (line + 1)]!;
    const row = Buffer.from(raw.subarray(y * (line + 1) + 1, (y + 1) * (line + 1)));
    for (let x = 0; x < line; x++) {
      const left = x < bytes ? 0 : row[x - bytes]!;
      const corner = x < bytes ? 0 : before[x - bytes]!;
      row[x] = (row[x]! + predicted(filter, left, before[x]!, corner)) & 255;
    }
    for (let x = 0; x < width; x++) {
      const at = x * bytes;
      pixels[y * width + x] = (row[at]! << 16) | (row[at + 1]! << 8) | row[at + 2]!;
    }
    before = row;
  }
  return { width, height, pixels };
}

function predicted(filter: number, left: number, above: number, corner: number): number {
  if (filter === 1) return left;
  if (filter === 2) return above;
  if (filter === 3) return (left + above) >> 1;
  if (filter !== 4) return 0;
  const [p, q, r] = [Math.abs(above - corner), Math.abs(left - corner), Math.abs(left + above - 2 * corner)];
  return p <= q && p <= r ? left : q <= r ? above : corner;
}
