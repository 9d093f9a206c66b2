import assert from 'node:assert/strict';
import { parseMask } from '../../../model/cpu-mask/mask.ts';
import { ParseError } from '../../../model/errors.ts';
import {
  maskRefusals,
  maskRequestKey,
  maskRequestOf,
  maskWithExclusiveCpus,
} from '../../../model/launcher/mask-request.ts';
import {
  formatPausedStart,
  nextStep,
  type PausedStart,
  type PinningReport,
  parsePausedStart,
  pausesAtStart,
  type StartingVmi,
} from '../../../model/launcher/paused-start.ts';
import type { VmiShape } from '../../../model/shapes.ts';
import { collectGarbage, leastProcessorTime } from '../../support/processor-time.ts';

type StartStep = ReturnType<typeof nextStep>;

const MASK = 'plumbline.dev/cpu-mask';
const START = 'plumbline.dev/cpu-mask-start';
const OTHER_VERSION =
  'its record "halted 7" is of another version of Plumbline: upgrade the extender, or unpause the VM yourself';
const UNKNOWN: StartStep = { do: 'tell', reason: 'UnknownRecord', message: OTHER_VERSION };
const [T1, T2] = ['2026-11-01T10:00:00Z', '2026-11-01T10:05:00Z'];
describe('a start that waits for its pins', () => {
  const spec = (more: Partial<VmiShape['spec']> = {}): VmiShape['spec'] => ({ domain: { cpu: { cores: 2 } }, ...more });
  const starts: [string, string | undefined, VmiShape['spec'], boolean, Record<string, string>?][] = [
    ['with a mask', '0:1', spec(), true],
    ['with a mask that pins nothing', 'all', spec(), false],
    ['that its user starts paused', '0:1', spec({ startStrategy: 'Paused' }), false],
    ['with a liveness probe, which KubeVirt does not pause', '0:1', spec({ livenessProbe: {} }), false],
    ['that its user starts running', '0:1', spec(), false, { [START]: 'running' }],
    ['with a start of an unknown value', '0:1', spec(), true, { [START]: 'yes' }],
  ];
  for (const [what, mask, vmiSpec, pauses, annotations] of starts) {
    it(`is ${pauses ? '' : 'not '}used for a VM ${what}`, () => {
      const metadata = mask === undefined ? {} : { annotations: { ...annotations, [MASK]: mask } };
      assert.equal(pausesAtStart({ metadata, spec: vmiSpec }), pauses);
    });
  }

  const waiting: PausedStart = { state: 'waiting' };
  const noted: PausedStart = { state: 'paused', since: T1 };
  const over: PausedStart = { state: 'resumed' };
  const foreign: PausedStart = { state: 'unknown', text: 'halted 7' };
  const ioError = { reason: 'PausedIOError', since: T1 };
  const ours = { reason: 'PausedByUser', since: T1 };
  const later = { reason: 'PausedByUser', since: T2 };
  const pinned: PinningReport = { state: 'pinned', reason: '', message: '' };
  const refused: PinningReport = { state: 'refused', reason: 'Empty', message: 'no CPU is left' };
  const nothing: StartStep = { do: 'nothing' };
  const note: StartStep = { do: 'record', record: noted };
  const end: StartStep = { do: 'record', record: over };
  const tell: StartStep = { do: 'tell', reason: 'Empty', message: 'no CPU is left' };

  const steps: [string, Partial<StartingVmi>, PinningReport | undefined, StartStep][] = [
    ['a VM that starts by its user’s choice, paused and pinned', { record: undefined, paused: ours }, pinned, nothing],
    ['a VM that does not run yet', { record: waiting, phase: 'Scheduled', paused: ours }, pinned, nothing],
    ['a VM seen paused', { record: waiting, paused: ours }, undefined, note],
    ['a VM paused for an I/O error', { record: waiting, paused: ioError }, pinned, nothing],
    ['a recorded VM with a silent agent', { record: noted, paused: ours }, undefined, { do: 'wait' }],
    ['a recorded and pinned VM', { record: noted, paused: ours }, pinned, { do: 'unpause' }],
    ['a recorded and refused VM', { record: noted, paused: ours }, refused, tell],
    ['a VM that its user resumed before it was pinned', { record: noted, paused: undefined }, undefined, end],
    ['a VM resumed by a replica that died before it recorded it', { record: noted, paused: undefined }, pinned, end],
    ['a resumed VM that its user paused', { record: noted, paused: later }, pinned, end],
    ['a recorded VM with an I/O error', { record: noted, paused: ioError }, pinned, end],
    ['a paused VM with a record of another version', { record: foreign, paused: ours }, pinned, UNKNOWN],
    ['a VM after its start that its user pauses', { record: over, paused: later }, pinned, nothing],
  ];
  for (const [what, vmi, report, step] of steps) {
    it(`${what}: ${step.do}`, () => {
      assert.deepEqual(nextStep({ record: waiting, phase: 'Running', paused: undefined, ...vmi }, report), step);
    });
  }

  it('is written and read back', () => {
    for (const record of [waiting, noted, over, foreign])
      assert.deepEqual(parsePausedStart(formatPausedStart(record)), record);
    assert.equal(parsePausedStart(undefined), undefined);
    for (const text of ['', 'paused', 'paused ', 'Waiting', 'yes']) {
      assert.deepEqual(parsePausedStart(text), { state: 'unknown', text });
    }
  });
});
const FIX = 'plumbline.dev/fix-cpu-mismatch';
/** A mask with a thousand wide entries. */
const wide = Array.from({ length: 1000 }, (_, start) => `${start}-1023`).join(':');
describe('the mask of a VM or its launcher', () => {
  const refusals = (mask: string, cpu: object, vcpusUnknown = false) =>
    maskRefusals({ metadata: { annotations: { [MASK]: mask } }, spec: { domain: { cpu } }, vcpusUnknown });
  const EXCLUSIVE = / \(1:2\) and dedicatedCpuPlacement are mutually exclusive: KubeVirt pins dedicated CPUs\. Remove/;
  for (const [what, mask, cpu, expected] of [
    ['as many entries as vCPUs', '1:2', { cores: 2 }, /^$/],
    ['CPUs of its own', '1:2', { cores: 2, dedicatedCpuPlacement: true }, EXCLUSIVE],
    ['more entries than vCPUs', '1:2:3', { cores: 2 }, new RegExp(`^annotation ${MASK}: .*3.*2`)],
    ['no mask', 'x', { cores: 2 }, new RegExp(`^annotation ${MASK}: `)],
  ] as const)
    it(`is checked: ${what}`, () => assert.match(refusals(mask, cpu).join('\n'), expected));

  it('is not compared with vCPUs that are unknown', () => assert.deepEqual(refusals('1:2:3', { cores: 2 }, true), []));

  it('is refused for a launcher that gets CPUs of its own', () => {
    const [refusal] = maskWithExclusiveCpus({ annotations: { [MASK]: '1:2' } });
    assert.match(refusal ?? '', new RegExp(`^annotation ${MASK}: .* are equal and whole CPUs`));
    assert.deepEqual(maskWithExclusiveCpus({ annotations: { [MASK]: 'all' } }), []);
  });
});
describe('a mask request', () => {
  const request = (annotations: Record<string, string>) => maskRequestOf({ annotations });

  it('has a mask and a key', () => {
    assert.equal(maskRequestOf({}), undefined);
    assert.equal(request({ [MASK]: 'all' }), undefined);
    const plain = request({ [MASK]: '1:2' })!;
    assert.deepEqual([plain.fixMismatch, plain.mask], [false, parseMask('1:2')]);
    assert.equal(maskRequestKey(plain), '1:2');
    assert.equal(maskRequestKey(request({ [MASK]: '1:2', [FIX]: 'true' })!), '1:2 or all');
    assert.equal(request({ [MASK]: '1:2', [FIX]: 'yes' })!.fixMismatch, false);
    assert.equal(maskRequestKey({ mask: parseMask('1,0:2'), fixMismatch: true }), '0-1:2 or all');
    assert.throws(() => request({ [MASK]: 'x' }), ParseError);
  });

  it('takes only the memory of its text, for thousands of VMs', () => {
    const requests = (from: number) =>
      Array.from({ length: 400 }, (_, i) => request({ [MASK]: `${from + i}:${wide}` })!);
    const some = requests(0);
    collectGarbage();
    const before = process.memoryUsage();
    const more = requests(400);
    collectGarbage();
    const after = process.memoryUsage();
    const each = (after.heapUsed + after.arrayBuffers - before.heapUsed - before.arrayBuffers) / more.length;
    assert.ok(each < 40_000, `${each} bytes each`);
    const spent = leastProcessorTime(() => {
      for (const one of [...some, ...more]) for (let node = 0; node < 50; node++) maskRequestKey(one);
    });
    assert.ok(spent < 200, `${spent} ms for the keys of 800 masks on 50 nodes`);
  });
});
