import assert from 'node:assert/strict';
import { type HostPins, hostPins, overlaps, planPins } from '../../../model/cpu-mask/host-pins.ts';
import { parseMask } from '../../../model/cpu-mask/mask.ts';
import { CpuSet } from '../../../model/cpu-set.ts';

const set = (text: string) => CpuSet.parse(text);
const counting = (count: number) => Array.from({ length: count }, (_, index) => index);

describe('planned pins', () => {
  const host = CpuSet.range(0, 15);
  for (const [what, mask, indexes, vcpus, allowed, answer] of [
    ['one entry for every thread', '0-1', [0, 1, 2], 3, host, ['0: 0-1', '1: 0-1', '2: 0-1']],
    ['M10: limited to the allowed CPUs', '0-7', [0], 1, set('4-9'), ['0: 4-7']],
    ['M10: no CPU left', '0-7:0', [0, 1], 2, set('4-9'), 'empty'],
    ['M4: too few threads', '1:3', [0], 2, host, 'threads'],
    ['M4: a gap in the indexes', '1:3', [0, 2], 2, host, 'threads'],
    ['M4: entries for other vCPUs', '1:3:5', [0, 1], 2, host, 'count'],
  ] as const) {
    it(`${what}: ${Array.isArray(answer) ? answer.join('; ') || 'no pins' : answer}`, () => {
      const plan = planPins(parseMask(mask), indexes, vcpus, allowed);
      assert.deepEqual(plan.kind === 'pin' ? plan.pins.map(({ vcpu, cpus }) => `${vcpu}: ${cpus}`) : plan.code, answer);
    });
  }

  it('M6: overlap between VMs is reported once for each pair', () => {
    const pairs = overlaps([
      { vm: 'a', cpus: set('0-3') },
      { vm: 'b', cpus: set('3-4') },
      { vm: 'c', cpus: set('4,8') },
    ]);
    assert.deepEqual(
      pairs.map(({ a, b, cpus }) => `${a} ${b} ${cpus}`),
      ['a b 3', 'b c 4'],
    );
  });
});

describe('pins on a host', () => {
  const vm = {
    fixMismatch: false,
    indexes: [0, 1],
    online: set('0-7'),
    container: set('0-5'),
    withheld: set('0,4'),
    mayBePlugged: false,
  };
  const on = (mask: string, more: Partial<Parameters<typeof hostPins>[0]> = {}) =>
    hostPins({ ...vm, ...more, mask: parseMask(mask) });
  const answerOf = (pins: HostPins) =>
    pins.kind === 'pin' ? pins.pins.map(({ vcpu, cpus }) => `${vcpu}: ${cpus}`) : pins.reason;

  for (const [what, mask, more, answer] of [
    ['a list for the VM, without withheld CPUs', '0-7', {}, ['0: 1-3,5', '1: 1-3,5']],
    ['a CPU of another container', '1:6', {}, 'Empty'],
    ['a CPU that is not online', '1:8', {}, 'HostCPUs'],
    ['a CPU that is not online, to be fixed', '1:8', { fixMismatch: true }, []],
    ['a thread without its predecessor', '1', { indexes: [0, 2] }, 'Threads'],
    ['a gap after a migration', '1:2', { indexes: [0, 2], mayBePlugged: true }, 'Threads'],
  ] as const) {
    it(`${what}: ${answer}`, () => assert.deepEqual(answerOf(on(mask, more)), answer));
  }

  const counts: [what: string, mask: string, vcpus: number, pins: string[], message: RegExp | undefined][] = [
    ['as many vCPUs', '1:3', 2, ['0: 1', '1: 3'], undefined],
    [
      'more vCPUs',
      '1:3',
      4,
      ['0: 1', '1: 3', '2: 1-3,5', '3: 1-3,5'],
      /entries for 2 vCPUs, and the VM has 4: the others run on any of its CPUs/,
    ],
    ['fewer vCPUs', '1:2:3', 2, ['0: 1', '1: 2'], /entries for 3 vCPUs, and the VM has 2: the other entries wait/],
    // The entry that names a reserved CPU waits for its vCPU, and only then refuses the VM.
    ['one vCPU', '1:0', 1, ['0: 1'], /the other entries wait/],
  ];
  for (const [what, mask, vcpus, pins, message] of counts) {
    it(`after a migration, ${what}: ${pins.join('; ')}`, () => {
      const answer = on(mask, { indexes: counting(vcpus), mayBePlugged: true });
      assert.ok(answer.kind === 'pin');
      assert.deepEqual(answerOf(answer), pins);
      if (message === undefined) assert.equal(answer.otherCount, undefined);
      else assert.match(answer.otherCount?.message ?? '', message);
      assert.equal(answer.otherCount?.waits ?? false, mask.split(':').length > vcpus);
    });
  }
});
