import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createAffinity, SyscallError, type ThreadAffinity } from '../../native/affinity.ts';

const allowedMask = (pid: number): bigint => {
  const line = /Cpus_allowed:\s*(\S+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'));
  return BigInt(`0x${line?.[1]?.replaceAll(',', '') ?? '0'}`);
};
const asBigInt = (words: Uint32Array): bigint => words.reduceRight((all, word) => (all << 32n) | BigInt(word), 0n);

describe('native affinity', () => {
  if (process.platform !== 'linux') return;
  let affinity: ThreadAffinity;
  let child: ReturnType<typeof spawn>;
  let pid: number;

  before(async () => {
    affinity = createAffinity();
    child = spawn(process.execPath, ['-e', 'setTimeout(() => {}, 60_000)']);
    await once(child, 'spawn');
    pid = child.pid!;
  });
  after(() => child.kill());

  it('reads the same mask as /proc shows', () => {
    assert.equal(asBigInt(affinity.get(pid)), allowedMask(pid));
  });

  it('sets one existing CPU, and all of them again', () => {
    const all = affinity.get(pid);
    const first = all.findIndex((word) => word !== 0);
    const words = new Uint32Array(first + 1);
    words[first] = all[first]! & -all[first]!;
    affinity.set(pid, words);
    assert.equal(asBigInt(affinity.get(pid)), asBigInt(words));
    assert.equal(allowedMask(pid), asBigInt(words));
    affinity.set(pid, all);
    assert.equal(allowedMask(pid), asBigInt(all));
  });

  it('accepts masks of any length: the kernel ignores CPUs that do not exist', () => {
    for (const length of [1, 2, 3, 32, 33, 2048]) {
      const words = new Uint32Array(length).fill(0xffffffff);
      affinity.set(pid, words);
      assert.equal(asBigInt(affinity.get(pid)), asBigInt(affinity.get(process.pid)));
    }
  });

  const failures: [string, () => unknown, string][] = [
    ['get of an ended thread', () => affinity.get(4_194_303), 'ESRCH'],
    ['set of an ended thread', () => affinity.set(4_194_303, Uint32Array.of(1)), 'ESRCH'],
    ['only CPUs that do not exist', () => affinity.set(pid, Uint32Array.of(0, 0, 0, 0x80000000)), 'EINVAL'],
    ['no CPU', () => affinity.set(pid, Uint32Array.of(0)), 'EINVAL'],
  ];
  for (const [name, run, code] of failures) {
    it(`${name}: ${code}`, () => {
      assert.throws(run, (error) => error instanceof SyscallError && error.code === code && error.tid > 0);
    });
  }

  const refused: [string, () => unknown][] = [
    ['a fraction', () => affinity.get(1.5)],
    ['zero, which would be the calling thread', () => affinity.get(0)],
    ['a negative id', () => affinity.set(-1, Uint32Array.of(1))],
    ['an id beyond the largest pid', () => affinity.get(2 ** 31)],
    ['an empty mask', () => affinity.set(pid, new Uint32Array(0))],
  ];
  for (const [name, run] of refused) it(`refuses ${name} before the system call`, () => assert.throws(run, RangeError));
});
