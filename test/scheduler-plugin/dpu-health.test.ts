import assert from 'node:assert/strict';
import type { KubeClient } from '../../kube/client.ts';
import { createDpuHealth, type DpuHealth, type LeaseView } from '../../scheduler-plugin/cluster/dpu-health.ts';
import { dpuRefusal } from '../../scheduler-plugin/filter/dpu-text.ts';
import { recordingLogger } from '../node-agent/support.ts';

describe('the DPU’s health, seen by the extender', () => {
  let now: number;
  let health: DpuHealth;
  const told: string[] = [];
  const start = (proof: number) => {
    now = 100;
    told.length = 0;
    health = createDpuHealth({
      client: { get: () => Promise.reject(new Error('not asked here')) } as unknown as KubeClient,
      namespace: 'ovn-kubernetes',
      whenUnknown: 'ready',
      proof,
      onChange: (node, { state }) => void told.push(`${node} ${state}`),
      log: recordingLogger().log,
      now: () => now,
    });
  };
  afterEach(() => health.stop());

  /** The watch brings the lease as it is. */
  const seen = (renewTime?: string) => {
    const view: LeaseView = { node: 'a', renewTime, duration: 40 };
    health.changed('a', view);
    return health.verdict('a').ready;
  };

  it('one renewal is enough where Plumbline keeps the lease', () => {
    start(1);
    assert.equal(seen('1'), false, 'what was there before proves nothing');
    assert.equal(seen('2'), true);
  });

  it('two in a row where OVN-Kubernetes does: its host side renews once at each start', () => {
    start(2);
    seen('1');
    assert.equal(seen('2'), false);
    now += 41;
    assert.equal(seen('3'), false, 'not in a row');
    now += 10;
    assert.equal(seen('4'), true);
    assert.deepEqual(told, ['a unproven', 'a alive']);
  });

  it('a lease that is never renewed is dead after its duration, and the refusal says so', () => {
    start(1);
    seen();
    now += 39;
    seen();
    assert.equal(health.verdict('a').state, 'unproven');
    now += 1;
    seen();
    assert.equal(health.verdict('a').state, 'dead');
    assert.deepEqual(told, ['a unproven', 'a dead']);
    assert.match(JSON.stringify(dpuRefusal(health.verdict('a'))), /never seen to renew its lease/);
  });
});
