import assert from 'node:assert/strict';
import { readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { GateState } from '../../../model/cni/decide.ts';
import { NOTHING_OBSERVED } from '../../../model/lease/observer.ts';
import { gateStateFile, observedLease, readObservedLease } from '../../../node-agent/gate/state-file.ts';
import { recordingLogger, tempDirectories } from '../support.ts';

const POLICY = { status: true, scope: 'all', exempt: ['kube-system'] } as const;
const STATE = { dpu: 'not-ready', reason: 'its lease ran out', ...POLICY, at: 5 } as const;
const SEEN = { since: 10, renewTime: '2026-01-01T00:00:00.000000Z', changedAt: 12.5, changes: 3, answeredAt: 20.25 };

describe('the gate’s state file', () => {
  const temp = tempDirectories();
  let path: string;
  beforeEach(() => {
    path = join(temp(), 'run', 'gate.state');
  });
  const writeGateState = (state: GateState) => {
    const file = gateStateFile(path, recordingLogger().log);
    file.load(AbortSignal.abort());
    file.set(state);
    assert.equal(file.problem, undefined);
  };

  it('passes the observed Lease to the next process, until the machine reboots', () => {
    const lease = observedLease(SEEN, 'boot-1');
    writeGateState({ ...STATE, lease });
    const { since: _, ...rest } = SEEN;
    assert.deepEqual(readObservedLease(path, 'boot-1'), { ...rest, since: SEEN.changedAt });
    assert.equal(readObservedLease(path, 'boot-2'), undefined, 'the clock has started again');
    assert.equal(readObservedLease(path, undefined), undefined);
  });

  it('has no Lease before a renewal was seen', () => {
    assert.equal(observedLease(NOTHING_OBSERVED, 'boot-1'), undefined);
    writeGateState(STATE);
    assert.equal(readObservedLease(path, 'boot-1'), undefined);
  });

  it('does not keep a dead DPU alive with times in the future', () => {
    const now = 100;
    for (const [more, isTaken] of [
      [{}, true],
      [{ changedAt: 99, answeredAt: 1e9 }, false],
      [{ changedAt: 1e9, answeredAt: 99 }, false],
    ] as const) {
      writeGateState({ ...STATE, lease: observedLease({ ...SEEN, ...more }, 'boot-1') });
      assert.equal(readObservedLease(path, 'boot-1', now) !== undefined, isTaken, JSON.stringify(more));
    }
  });

  it('stays below the size that the shim reads, for any reason and renewTime', () => {
    const exempt = Array.from({ length: 128 }, () => 'x'.repeat(63));
    const lease = observedLease({ ...SEEN, renewTime: '2'.repeat(10_000) }, 'boot-1');
    writeGateState({ ...STATE, exempt, reason: '’'.repeat(10_000), lease });
    assert.ok(statSync(path).size < 16_384, `${statSync(path).size} bytes`);
  });

  it('gives no observed Lease if it is torn, foreign or missing', () => {
    assert.equal(readObservedLease(path, 'boot-1'), undefined);
    writeGateState({ ...STATE, lease: observedLease(SEEN, 'boot-1') });
    const text = readFileSync(path, 'utf8');
    const later = '{"format":2,"leases":[]}';
    for (const wrong of ['', text.slice(0, -10), '[]', later, text.replace('"changes":3', '"changes":-1')]) {
      writeFileSync(path, wrong);
      assert.equal(readObservedLease(path, 'boot-1'), undefined, wrong);
    }
    writeFileSync(path, text.replace('"changes":3', '"changes":3,"more":1'));
    assert.equal(readObservedLease(path, 'boot-1')?.changes, 3, 'a field of a later version');
  });
});
