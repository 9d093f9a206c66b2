/**
 * XXH64, the hash in pod fingerprints of NodeResourceTopology objects.
 *
 * Source: https://github.com/Cyan4973/xxHash/blob/dev/doc/xxhash_spec.md
 */
const [P1, P2, P3, P4, P5] = [
  11400714785074694791n,
  14029467366897019727n,
  1609587929392839161n,
  9650029242287828579n,
  2870177450012600261n,
] as const;

const u64 = (value: bigint) => BigInt.asUintN(64, value);
const rotate = (value: bigint, bits: bigint) => u64((value << bits) | (value >> (64n - bits)));
const round = (sum: bigint, lane: bigint) => u64(rotate(u64(sum + lane * P2), 31n) * P1);
const merge = (sum: bigint, lane: bigint) => u64((sum ^ round(0n, lane)) * P1 + P4);

export function xxhash64(bytes: Buffer, seed = 0n): bigint {
  let at = 0;
  let sum: bigint;
  if (bytes.length >= 32) {
    let lanes = [u64(seed + P1 + P2), u64(seed + P2), seed, u64(seed - P1)];
    for (; at + 32 <= bytes.length; at += 32) {
      lanes = lanes.map((lane, i) => round(lane, bytes.readBigUInt64LE(at + i * 8)));
    }
    sum = u64(lanes.reduce((all, lane, i) => all + rotate(lane, [1n, 7n, 12n, 18n][i]!), 0n));
    for (const lane of lanes) sum = merge(sum, lane);
  } else sum = u64(seed + P5);
  sum = u64(sum + BigInt(bytes.length));
  for (; at + 8 <= bytes.length; at += 8) {
    sum = u64(rotate(sum ^ round(0n, bytes.readBigUInt64LE(at)), 27n) * P1 + P4);
  }
  if (at + 4 <= bytes.length) {
    sum = u64(rotate(sum ^ u64(BigInt(bytes.readUInt32LE(at)) * P1), 23n) * P2 + P3);
    at += 4;
  }
  for (; at < bytes.length; at++) sum = u64(rotate(sum ^ u64(BigInt(bytes.readUInt8(at)) * P5), 11n) * P1);
  sum = u64((sum ^ (sum >> 33n)) * P2);
  sum = u64((sum ^ (sum >> 29n)) * P3);
  return sum ^ (sum >> 32n);
}
