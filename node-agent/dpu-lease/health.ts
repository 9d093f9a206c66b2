import { isNotFound, type KubeClient } from '../../kube/client.ts';
import { nodeTarget } from '../../kube/events.ts';
import type { DpuWord } from '../../model/cni/decide.ts';
import {
  describeLease,
  isReady,
  judgeLease,
  type LeaseObservation,
  type LeaseReading,
  type LeaseState,
  type LeaseVerdict,
  NOTHING_OBSERVED,
  observeLease,
} from '../../model/lease/observer.ts';
import { type LeaseTiming, observationPeriod } from '../../model/lease/timing.ts';
import { Durations } from '../../runtime/problem-log.ts';
import { sleep, underSignals } from '../../runtime/time.ts';
import { type LeaseName, readLease } from '../kube-objects/lease.ts';
import { Listeners, type Services } from '../lifecycle/duty.ts';

export interface DpuHealthDeps {
  readonly client: KubeClient;
  readonly lease: LeaseName;
  readonly timing: LeaseTiming;
  /** Renewals until the DPU counts as alive: more than 1 where OVN-Kubernetes' host side writes the Lease, too. */
  readonly proof: number;
  readonly whenUnknown: 'ready' | 'not-ready';
  /** The observation of an earlier process of this agent, on the same clock. */
  readonly before?: LeaseObservation | undefined;
  /** Seconds of a monotonic clock. */
  readonly now: () => number;
}

export interface DpuHealthReport extends DpuWord, LeaseVerdict {}

/** `flipped`: whether ready changed. */
export type HealthListener = (report: DpuHealthReport, flipped: boolean) => void;

export type HostDpuHealth = ReturnType<typeof createHostDpuHealth>;

/** Timeout of a read, in seconds; a longer read counts as failed. */
const READ_TIMEOUT_SECONDS = 5;
/** The lease duration divided by the interval of reads while the DPU is not alive: waiting pods continue soon. */
const WAITING_SHARE = 20;
const MIN_CHECK_SECONDS = 0.05;

/** Reads the DPU's Lease once in each renewal interval, and when it expires. */
export function createHostDpuHealth(deps: DpuHealthDeps) {
  const { client, lease, timing, now, whenUnknown } = deps;
  const { duration } = timing;
  const options = { duration, proof: deps.proof };
  const listeners = new Listeners<Parameters<HealthListener>>();
  let observation = deps.before ?? NOTHING_OBSERVED;
  /** Until the first answer: when the previous process read the Lease for the last time. */
  let readBefore = deps.before?.answeredAt;
  let lastReady: boolean | undefined;

  const current = (): DpuHealthReport => {
    const verdict = judgeLease(observation, now(), options);
    const reason = describeLease(verdict, { lease: lease.name, duration });
    return { ...verdict, ready: isReady(verdict.state, whenUnknown), reason };
  };

  const read = async (signal: AbortSignal): Promise<LeaseReading> => {
    try {
      const { spec } = await underSignals([signal], READ_TIMEOUT_SECONDS, (limit) => readLease(client, lease, limit));
      return { kind: 'read', renewTime: spec?.renewTime };
    } catch (error) {
      return isNotFound(error) ? { kind: 'missing' } : { kind: 'failed' };
    }
  };

  const take = (reading: LeaseReading): void => {
    if (reading.kind === 'failed') return;
    // A renewal between two reads may be as old as the previous read, so it counts from then.
    observation = { ...observeLease(observation, reading, readBefore ?? now(), options), answeredAt: now() };
    readBefore = undefined;
  };

  const poll = async (signal: AbortSignal): Promise<number> => {
    take(await read(signal));
    const report = current();
    const flipped = report.ready !== lastReady;
    lastReady = report.ready;
    listeners.notify(report, flipped);
    if (report.state !== 'alive') return Math.max(MIN_CHECK_SECONDS, Math.min(1, duration / WAITING_SHARE));
    const untilDeath = (report.until ?? Number.POSITIVE_INFINITY) - now();
    return Math.max(MIN_CHECK_SECONDS, Math.min(observationPeriod(timing), untilDeath + MIN_CHECK_SECONDS));
  };

  return {
    /** The verdict at the time of the call, not of the last read. */
    current,
    observation: () => observation,
    /** One read. @returns seconds until the next is due */
    poll,
    subscribe: listeners.subscribe,
    async run(signal: AbortSignal) {
      while (!signal.aborted) await sleep(await poll(signal), signal).catch(() => undefined);
    },
  };
}

/** Reports each change in an Event on the Node, a log line and metrics: also unknown where that counts as ready. */
export function announceHealth({ nodeName, events, metrics, log }: Omit<Services, 'client'>): HealthListener {
  const target = nodeTarget(nodeName);
  const durations = new Durations();
  let last: LeaseState | undefined;
  return (report) => {
    const { ready, state, reason, age } = report;
    metrics.dpuReady.set(ready ? 1 : 0);
    for (const candidate of ['alive', 'unproven', 'dead', 'unknown'])
      metrics.dpuState.set({ state: candidate }, candidate === state ? 1 : 0);
    if (age !== undefined) metrics.dpuRenewalAge.set(age);
    if (state === last) return;
    last = state;
    if (state === 'alive') {
      const [event, message] = ['DPUReady', `The DPU is ready: ${reason}`];
      log.info({ state, event, message, ...durations.end('') }, 'DPU is ready');
      events.record(target, { type: 'Normal', reason: event, message });
      return;
    }
    durations.begin('');
    const [event, message] = ready
      ? ['DPUUnknown', `DPU Unknown, treated as ready: ${reason}`]
      : ['DPUNotReady', `DPU Not Ready: ${reason}`];
    const fields = { state, event, message };
    if (ready) log.warn(fields, 'DPU state unknown; treating it as ready');
    else if (state === 'unproven') log.info(fields, 'waiting for the DPU to renew its lease');
    else log.warn(fields, 'DPU is not ready');
    events.record(target, { type: 'Warning', reason: event, message });
  };
}
