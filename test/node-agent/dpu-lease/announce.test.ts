import assert from 'node:assert/strict';
import type { EventRecorder } from '../../../kube/events.ts';
import type { LeaseState } from '../../../model/lease/observer.ts';
import { announceHealth } from '../../../node-agent/dpu-lease/health.ts';
import { recordingLogger, testMetrics } from '../support.ts';

describe('reports of the DPU health', () => {
  it('record one Event for each change of state, and update the metrics at each check', async () => {
    const notified: string[] = [];
    const events = {
      record: (
        { kind, name }: { kind: string; name: string },
        event: { type: string; reason: string; message: string },
      ) => void notified.push(`${kind}/${name} ${event.type} ${event.reason}: ${event.message}`),
    } as unknown as EventRecorder;
    const metrics = testMetrics();
    const announce = announceHealth({ nodeName: 'a', events, metrics, log: recordingLogger().log });
    const look = (state: LeaseState, ready: boolean, age?: number) =>
      announce({ state, ready, reason: 'why', age, until: undefined }, false);
    assert.deepEqual((await metrics.dpuReady.get()).values, [], 'no answer before the first look');
    look('unproven', false);
    assert.deepEqual((await metrics.dpuRenewalAge.get()).values, [], 'never renewed is not renewed 0 s ago');
    look('alive', true, 0);
    look('alive', true, 9);
    look('unknown', true, 41);
    look('dead', false, 61);
    look('dead', false, 62);
    look('alive', true, 1);
    assert.deepEqual(notified, [
      'Node/a Warning DPUNotReady: DPU Not Ready: why',
      'Node/a Normal DPUReady: The DPU is ready: why',
      'Node/a Warning DPUUnknown: DPU Unknown, treated as ready: why',
      'Node/a Warning DPUNotReady: DPU Not Ready: why',
      'Node/a Normal DPUReady: The DPU is ready: why',
    ]);
    look('dead', false, 70.5);
    const value = async (metric: { get(): Promise<{ values: { value: number; labels: object }[] }> }) =>
      (await metric.get()).values.filter(({ value: state }) => state !== 0);
    assert.deepEqual(
      (await value(metrics.dpuRenewalAge)).map(({ value: age }) => age),
      [70.5],
    );
    assert.deepEqual(await value(metrics.dpuReady), []);
    assert.deepEqual(
      (await value(metrics.dpuState)).map(({ labels }) => labels),
      [{ state: 'dead' }],
    );
  });
});
