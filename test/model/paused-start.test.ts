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
} from '../../model/launcher/paused-start.ts';
import type { VmiShape } from '../../model/launcher/shapes.ts';

const MASK = 'plumbline.dev/cpu-mask';
const [T1, T2] = ['2026-11-01T10:00:00Z', '2026-11-01T10:05:00Z'];

describe('a start that waits to be pinned', () => {
  const spec = (more: Partial<VmiShape['spec']> = {}): VmiShape['spec'] => ({ domain: { cpu: { cores: 2 } }, ...more });
  const starts: [string, string | undefined, VmiShape['spec'], boolean][] = [
    ['with a mask', '0:1', spec(), true],
    ['with a mask for one vCPU', 'all:1', spec(), true],
    ['with a mask that pins nothing', 'all', spec(), false],
    ['with an empty mask', '', spec(), false],
    ['without a mask', undefined, spec(), false],
    ['that its user has start paused', '0:1', spec({ startStrategy: 'Paused' }), false],
    ['with a liveness probe, which KubeVirt does not pause', '0:1', spec({ livenessProbe: {} }), false],
    ['with CPUs of its own', '0:1', spec({ domain: { cpu: { cores: 2, dedicatedCpuPlacement: true } } }), false],
  ];
  for (const [what, mask, one, pauses] of starts) {
    it(`is ${pauses ? '' : 'not '}that of a VM ${what}`, () => {
      const metadata = mask === undefined ? {} : { annotations: { [MASK]: mask } };
      assert.equal(pausesAtStart({ metadata, spec: one }), pauses);
    });
  }

  const waiting: PausedStart = { state: 'waiting' };
  const noted: PausedStart = { state: 'paused', since: T1 };
  const over: PausedStart = { state: 'resumed' };
  const ours = { reason: 'PausedByUser', since: T1 };
  const later = { reason: 'PausedByUser', since: T2 };
  const pinned: PinningReport = { state: 'pinned', reason: '', message: '' };
  const refused: PinningReport = { state: 'refused', reason: 'Empty', message: 'no CPU is left' };
  const nothing: StartStep = { do: 'nothing' };
  const note: StartStep = { do: 'record', record: noted };
  const end: StartStep = { do: 'record', record: over };
  const tell: StartStep = { do: 'tell', reason: 'Empty', message: 'no CPU is left' };

  const steps: [string, Partial<StartingVmi>, PinningReport | undefined, StartStep][] = [
    ['a VM that starts as its user says, paused and pinned', { record: undefined, paused: ours }, pinned, nothing],
    ['a VM that does not run yet', { record: waiting, phase: 'Scheduled', paused: ours }, pinned, nothing],
    ['one that runs, not seen paused yet', { record: waiting, paused: undefined }, pinned, nothing],
    ['one seen paused', { record: waiting, paused: ours }, undefined, note],
    ['one seen paused and pinned: first written down', { record: waiting, paused: ours }, pinned, note],
    ['paused for an I/O error', { record: waiting, paused: { reason: 'PausedIOError', since: T1 } }, pinned, nothing],
    ['written down, its agent silent', { record: noted, paused: ours }, undefined, { do: 'wait' }],
    ['written down and pinned', { record: noted, paused: ours }, pinned, { do: 'unpause' }],
    ['written down and refused', { record: noted, paused: ours }, refused, tell],
    ['written down, pinned once', { record: noted, paused: ours }, { ...refused, state: 'unpinned' }, tell],
    ['resumed by its user before it was pinned', { record: noted, paused: undefined }, undefined, end],
    ['resumed by a replica that died before it said so', { record: noted, paused: undefined }, pinned, end],
    ['resumed, then paused by its user', { record: noted, paused: later }, pinned, end],
    ['in an I/O error by now', { record: noted, paused: { reason: 'PausedIOError', since: T1 } }, pinned, end],
    ['one whose start is over and that its user pauses', { record: over, paused: later }, pinned, nothing],
  ];
  for (const [what, vmi, report, step] of steps) {
    it(`${what}: ${step.do}`, () => {
      assert.deepEqual(nextStep({ record: waiting, phase: 'Running', paused: undefined, ...vmi }, report), step);
    });
  }

  it('is written down and read back', () => {
    for (const record of [waiting, noted, over]) assert.deepEqual(parsePausedStart(formatPausedStart(record)), record);
    assert.equal(parsePausedStart(undefined), undefined);
    for (const text of ['', 'paused', 'paused ', 'Waiting', 'yes']) {
      assert.deepEqual(parsePausedStart(text), { state: 'unknown', text });
    }
  });
});
