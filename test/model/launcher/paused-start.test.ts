import assert from 'node:assert/strict';
import {
  formatPausedStart,
  nextStep,
  type PausedStart,
  type PinningReport,
  parsePausedStart,
  pausesAtStart,
  type StartingVmi,
  type StartStep,
} from '../../../model/launcher/paused-start.ts';
import type { VmiShape } from '../../../model/shapes.ts';

const MASK = 'plumbline.dev/cpu-mask';
const START = 'plumbline.dev/cpu-mask-start';
const UNKNOWN: StartStep = {
  do: 'tell',
  reason: 'UnknownRecord',
  message: 'its record "halted 7" is of another version of Plumbline: upgrade the extender, or unpause the VM yourself',
};
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
