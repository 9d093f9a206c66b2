import assert from 'node:assert/strict';
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { createAffinity, SyscallError, type ThreadAffinity } from '../native/affinity.ts';
import { isThreadOf, threadsOfProcess } from '../native/peer.ts';
import { skipWithout } from './support/parts.ts';

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

  it('reads the same mask as /proc shows; sets one existing CPU, and all of them again', () => {
    assert.equal(asBigInt(affinity.get(pid)), allowedMask(pid));
    const all = affinity.get(pid);
    const first = all.findIndex((word) => word !== 0);
    const one = new Uint32Array(first + 1);
    one[first] = all[first]! & -all[first]!;
    for (const words of [one, all]) {
      affinity.set(pid, words);
      assert.deepEqual([asBigInt(affinity.get(pid)), allowedMask(pid)], [asBigInt(words), asBigInt(words)]);
    }
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

  for (const [name, run] of [
    ['a fraction', () => affinity.get(1.5)],
    ['zero, which would be the calling thread', () => affinity.get(0)],
    ['a negative id', () => affinity.set(-1, Uint32Array.of(1))],
    ['an id beyond the largest pid', () => affinity.get(2 ** 31)],
    ['an empty mask', () => affinity.set(pid, new Uint32Array(0))],
  ] as const)
    it(`refuses ${name} before the system call`, () => assert.throws(run, RangeError));
});

const MODULE = join(import.meta.dirname, '../native/peer.ts');

describe('threads of a process', () => {
  it('are all threads in /proc, and no others', () => {
    const own = threadsOfProcess(process.pid);
    assert.ok(own.length > 4 && own.every((tid) => isThreadOf(process.pid, tid)), own.join());
    assert.deepEqual([isThreadOf(process.pid, process.ppid), isThreadOf(process.ppid, process.pid)], [false, false]);
    // A thread id is not a pid.
    assert.equal(isThreadOf(own.at(-1)!, process.pid), false);
  });

  it('are none for invalid ids: 0 would be the caller’s own group', () => {
    for (const id of [0, -1, 2 ** 22 + 1])
      assert.deepEqual([isThreadOf(id, id), isThreadOf(process.pid, id)], [false, false]);
  });

  it('of another user are found without the permission to send signals, which the agent does not have', async function () {
    skipWithout('root', this);
    const other = spawn('sleep', ['60'], { uid: 65534 });
    const program = `import { isThreadOf } from ${JSON.stringify(MODULE)};
      let refused = 'sent';
      try { process.kill(${other.pid}, 0); } catch (error) { refused = error.code; }
      console.log(refused, isThreadOf(${other.pid}, ${other.pid}), isThreadOf(${other.pid}, process.pid));`;
    const node = [process.execPath, '--import', 'tsx', '--input-type=module', '-e', program];
    const text = execFileSync('setpriv', ['--bounding-set=-kill', ...node], { encoding: 'utf8' });
    other.kill('SIGKILL');
    assert.equal(text.trim(), 'EPERM true false');
  });
});
