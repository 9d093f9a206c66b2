import assert from 'node:assert/strict';
import { type KubeClient, KubeError } from '../../../kube/client.ts';
import type { EventRecorder } from '../../../kube/events.ts';
import type { LeaseObservation, LeaseState } from '../../../model/lease/observer.ts';
import { announceHealth, announceWriters, HostDpuHealth } from '../../../node-agent/dpu-lease/health.ts';
import { messagesOf, recordingLogger, testMetrics } from '../support.ts';

describe('the host of a DPU whose Lease has another writer', () => {
  it('says once that OVN-Kubernetes’ lease manager should be alone', async () => {
    let manager = 'plumbline-node-agent';
    const get = async () => ({
      metadata: { managedFields: [{ manager, fieldsV1: { 'f:spec': { 'f:renewTime': {} } } }] },
      spec: { renewTime: '2026-01-01T00:00:00.000000Z' },
    });
    const events: string[] = [];
    const { log, lines } = recordingLogger();
    const record = (_: unknown, { reason, message }: { reason: string; message: string }) =>
      void events.push(`${reason}: ${message}`);
    const health = new HostDpuHealth({
      client: { get } as unknown as KubeClient,
      lease: { namespace: 'ovn-kubernetes', name: 'ovn-dpu-a' },
      timing: { renewInterval: 10, duration: 40 },
      proof: 1,
      whenUnknown: 'ready',
      onWriter: announceWriters({ nodeName: 'a', events: { record, flush: async () => {} }, log }),
      nowSeconds: () => 0,
    });
    for (const name of ['plumbline-node-agent', 'ovnkube', 'plumbline-node-agent', 'ovnkube']) {
      manager = name;
      await health.poll(new AbortController().signal);
    }
    assert.deepEqual(events.length, 1);
    assert.match(events[0] ?? '', /^DPULeaseShared: ovnkube renews the DPU's Lease, too\. Use --dpu-lease observe/);
    assert.deepEqual(messagesOf({ lines }), ['40 DPU lease has another writer']);
  });
});

/** A Lease, an API server and a monotonic clock that a test moves; the observer of the host checks when it is due. */
class VirtualHost {
  /** In monotonic seconds. */
  now = 1000;
  /** undefined: the Lease does not exist; null: it was never renewed. */
  renewTime: string | null | undefined;
  apiDown = false;
  health: HostDpuHealth;
  readonly flips: { readonly at: number; readonly ready: boolean; readonly state: string }[] = [];
  private due = 0;
  private readonly timing: { readonly renewInterval: number; readonly duration: number };
  private readonly whenUnknown: 'ready' | 'not-ready';

  constructor(timing = { renewInterval: 10, duration: 40 }, whenUnknown: 'ready' | 'not-ready' = 'ready') {
    this.timing = timing;
    this.whenUnknown = whenUnknown;
    this.health = this.restart();
  }

  /** Moves the clock and runs each check that is due. */
  async pass(seconds: number): Promise<void> {
    const end = this.now + seconds;
    while (this.due <= end) {
      this.now = Math.max(this.now, this.due);
      this.due = this.now + (await this.health.poll(new AbortController().signal));
    }
    this.now = end;
  }

  /** Starts a new process of the agent, with the observations of the last one if given, as the state file does. */
  restart(before?: LeaseObservation | (() => LeaseObservation)): HostDpuHealth {
    this.due = this.now;
    const get = async () => {
      if (this.apiDown) throw new KubeError(0, 'Unreachable', 'down for the test');
      if (this.renewTime === undefined) throw new KubeError(404, 'NotFound', 'no lease');
      const spec = { leaseDurationSeconds: this.timing.duration, renewTime: this.renewTime };
      return { metadata: { name: 'ovn-dpu-a' }, spec };
    };
    this.health = new HostDpuHealth({
      client: { get } as unknown as KubeClient,
      lease: { namespace: 'ovn-kubernetes', name: 'ovn-dpu-a' },
      timing: this.timing,
      proof: 1,
      whenUnknown: this.whenUnknown,
      before: () => (typeof before === 'function' ? before() : before),
      nowSeconds: () => this.now,
    });
    this.health.subscribe(({ ready, state }, flipped) => {
      if (flipped) this.flips.push({ at: this.now, ready, state });
    });
    return this.health;
  }
}

let renewals = 0;
/** A new renewTime, `skew` seconds off, as a DPU with its own clock writes it. */
const renewed = (skew = 0) => new Date((1_700_000_000 + renewals++ + skew) * 1000).toISOString();

async function renewing(host: VirtualHost, times: number, interval = 10, skew = 0): Promise<void> {
  for (let i = 0; i < times; i++) {
    host.renewTime = renewed(skew);
    await host.pass(interval);
  }
}

async function alive(whenUnknown?: 'ready' | 'not-ready'): Promise<VirtualHost> {
  const host = new VirtualHost(undefined, whenUnknown);
  host.renewTime = null;
  await host.pass(1);
  await renewing(host, 3);
  assert.equal(host.health.current().state, 'alive');
  return host;
}

describe('the DPU health on the host', () => {
  it('a DPU whose clock is ten minutes behind: ready while it renews, dead within duration + one period after', async () => {
    const host = await alive();
    await renewing(host, 20, 10, -600);
    assert.equal(host.health.current().ready, true);
    host.flips.length = 0;
    // The last renewal was 10 s ago.
    await host.pass(60);
    assert.equal(host.flips.map(({ ready, state }) => `${ready} ${state}`).join(), 'false dead');
    const after = host.flips[0]!.at - (host.now - 70);
    assert.ok(after >= 40 && after <= 50, `noticed ${after} s after the last renewal`);
    assert.match(host.health.current().reason, /ovn-dpu-a was last renewed [-\d]+T[:\d]+Z; the limit is 40 s/);
  });

  it('one failed read flips nothing; an outage becomes Unknown after the duration, by policy', async () => {
    for (const whenUnknown of ['ready', 'not-ready'] as const) {
      const host = await alive(whenUnknown);
      host.flips.length = 0;
      host.apiDown = true;
      await host.pass(25);
      assert.deepEqual(host.flips, [], 'until the last observed renewal + duration nothing changes');
      assert.equal(host.health.current().state, 'alive');
      await host.pass(20);
      const { state, ready, reason } = host.health.current();
      assert.deepEqual([state, ready], ['unknown', whenUnknown === 'ready']);
      assert.match(reason, /the API server does not answer/);
      host.apiDown = false;
      await host.pass(2);
      assert.equal(host.health.current().state, 'dead', 'an answer without a change says more');
      host.renewTime = renewed();
      await host.pass(2);
      assert.equal(host.health.current().state, 'alive');
    }
  });

  it('after a restart, an unobserved renewal counts from the last read before it: ready early and never for too long', async () => {
    const host = await alive();
    const before = host.health.observation();
    host.renewTime = renewed();
    host.now += 20;
    host.restart(before);
    await host.pass(1);
    assert.equal(host.health.current().state, 'alive');
    await host.pass(20);
    assert.equal(host.health.current().state, 'dead', 'it may have come right after that look');
  });

  it('continues with what the earlier agent observed until this one is used, not until it was created', async () => {
    const host = await alive();
    const earlier = host.health;
    host.restart(() => earlier.observation());
    host.renewTime = renewed();
    host.now += 20;
    await earlier.poll(new AbortController().signal);
    assert.deepEqual(host.health.observation(), earlier.observation());
  });

  const pauses: [duration: number, interval: number, dead: number, alive: number][] = [
    [40, 10, 1, 10],
    [40, 30, 1, 10],
    [10, 2, 0.5, 2],
    [1, 0.9, 0.05, 0.25],
  ];
  for (const [duration, interval, dead, alive] of pauses) {
    it(`reads a Lease of ${duration} s after ${dead} s while the DPU is dead, after ${alive} s while it is alive`, async () => {
      const { signal } = new AbortController();
      const host = new VirtualHost({ renewInterval: interval, duration });
      assert.equal(await host.health.poll(signal), dead);
      host.renewTime = null;
      await host.health.poll(signal);
      host.renewTime = renewed();
      assert.equal(await host.health.poll(signal), alive);
      host.now += duration - alive / 2;
      const rest = await host.health.poll(signal);
      assert.ok(Math.abs(rest - (alive / 2 + 0.05)) < 1e-6, `${rest} s, just after its expiry`);
    });
  }
});

describe('reports of the DPU health', () => {
  it('record one Event for each change of state, and update the metrics at each check', async () => {
    const notified: string[] = [];
    const record: EventRecorder['record'] = ({ kind, name }, event) =>
      void notified.push(`${kind}/${name} ${event.type} ${event.reason}: ${event.message}`);
    const events = { record } as EventRecorder;
    const metrics = testMetrics();
    const announce = announceHealth({ nodeName: 'a', events, metrics, log: recordingLogger().log });
    const look = (state: LeaseState, ready: boolean, age?: number) =>
      announce({ state, ready, reason: 'why', age, until: undefined }, false);
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
    assert.equal((await value(metrics.dpuRenewalAge))[0]?.value, 70.5);
    assert.deepEqual(await value(metrics.dpuReady), []);
    assert.deepEqual((await value(metrics.dpuState))[0]?.labels, { state: 'dead' });
  });
});
