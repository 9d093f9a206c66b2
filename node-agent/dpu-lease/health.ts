import { isNotFound, type KubeClient } from '../../kube/client.ts';
import { nodeTarget } from '../../kube/events.ts';
import type { DpuWord } from '../../model/cni/decide.ts';
import { cut } from '../../model/errors.ts';
import { renewalWriter } from '../../model/lease/diagnose.ts';
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
import { AGENT } from '../../model/names.ts';
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
  /** Called at each read with the manager who renewed the Lease last. */
  readonly onWriter?: (manager: string | undefined) => void;
  /** The observation of an earlier process of this agent, on the same clock. Called once, when it is first needed. */
  readonly before?: () => LeaseObservation | undefined;
  /** Seconds of a monotonic clock. */
  readonly nowSeconds: () => number;
}

export interface DpuHealthReport extends DpuWord, LeaseVerdict {}

/** `flipped`: whether ready changed. */
export type HealthListener = (report: DpuHealthReport, flipped: boolean) => void;

/** Timeout of a read, in seconds; a longer read counts as failed. */
const READ_TIMEOUT_SECONDS = 5;
/** The lease duration divided by the interval of reads while the DPU is not alive: waiting pods continue soon. */
const WAITING_SHARE = 20;
const MAX_MANAGER_CHARACTERS = 80;
const MIN_CHECK_SECONDS = 0.05;

/**
 * Reads the DPU's Lease once in each renewal interval, and when it expires. Owner of the observation: this duty, after the
 * earlier agent's. Age: judged at each use, by the time of the last change and of the last answer.
 */
export class HostDpuHealth extends Listeners<Parameters<HealthListener>> {
  readonly #deps: DpuHealthDeps;
  /** Undefined until it is first needed: the earlier agent observes until this one has the agent's lock. */
  #observation: LeaseObservation | undefined;
  /** Monotonic seconds: until the first answer, when the earlier process read the Lease for the last time. */
  #readBefore: number | undefined;
  #lastReady: boolean | undefined;

  constructor(deps: DpuHealthDeps) {
    super();
    this.#deps = deps;
  }

  /** The verdict at the time of the call, not of the last read. */
  current(): DpuHealthReport {
    const { lease, timing, nowSeconds, whenUnknown } = this.#deps;
    const verdict = judgeLease(this.observation(), nowSeconds(), this.#options);
    const named = { lease: lease.name, duration: timing.duration, nowMilliseconds: Date.now() };
    const reason = describeLease(verdict, named);
    return { ...verdict, ready: isReady(verdict.state, whenUnknown), reason };
  }

  observation(): LeaseObservation {
    if (this.#observation === undefined) {
      this.#observation = this.#deps.before?.() ?? NOTHING_OBSERVED;
      this.#readBefore = this.#observation.answeredAt;
    }
    return this.#observation;
  }

  async run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) await sleep(await this.poll(signal), signal).catch(() => undefined);
  }

  /** One read. @returns seconds until the next is due */
  async poll(signal: AbortSignal): Promise<number> {
    const { timing, nowSeconds } = this.#deps;
    this.#observe(await this.#read(signal));
    const report = this.current();
    const flipped = report.ready !== this.#lastReady;
    this.#lastReady = report.ready;
    this.notify(report, flipped);
    if (report.state !== 'alive') return Math.max(MIN_CHECK_SECONDS, Math.min(1, timing.duration / WAITING_SHARE));
    const untilDeath = (report.until ?? Number.POSITIVE_INFINITY) - nowSeconds();
    return Math.max(MIN_CHECK_SECONDS, Math.min(observationPeriod(timing), untilDeath + MIN_CHECK_SECONDS));
  }

  get #options() {
    return { duration: this.#deps.timing.duration, proof: this.#deps.proof };
  }

  async #read(signal: AbortSignal): Promise<LeaseReading> {
    const { client, lease, onWriter } = this.#deps;
    try {
      const read = (limit: AbortSignal) => readLease(client, lease, limit);
      const { spec, metadata } = await underSignals([signal], READ_TIMEOUT_SECONDS, read);
      onWriter?.(renewalWriter({ renewTime: spec?.renewTime, managedFields: metadata.managedFields }));
      return { kind: 'read', renewTime: spec?.renewTime };
    } catch (error) {
      return isNotFound(error) ? { kind: 'missing' } : { kind: 'failed' };
    }
  }

  #observe(reading: LeaseReading): void {
    if (reading.kind === 'failed') return;
    const before = this.observation();
    const now = this.#deps.nowSeconds();
    // A renewal between two reads may be as old as the previous read, so it counts from then.
    this.#observation = { ...observeLease(before, reading, this.#readBefore ?? now, this.#options), answeredAt: now };
    this.#readBefore = undefined;
  }
}

/** Reports each program other than the DPU's agent that renews the Lease: OVN-Kubernetes' lease manager should be alone. */
export function announceWriters({ nodeName, events, log }: Pick<Services, 'nodeName' | 'events' | 'log'>) {
  let last: string = AGENT;
  return (manager = AGENT): void => {
    if (manager === AGENT || manager === last) return;
    last = manager;
    const event = 'DPULeaseShared';
    const message = `${cut(manager, MAX_MANAGER_CHARACTERS)} renews the DPU's Lease, too. Use --dpu-lease observe with OVN-Kubernetes' lease manager, which also repairs networks after a restart of the DPU`;
    log.warn({ event, message }, 'DPU lease has another writer');
    events.record(nodeTarget(nodeName), { type: 'Warning', reason: event, message });
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
    for (const other of ['alive', 'unproven', 'dead', 'unknown'])
      metrics.dpuState.set({ state: other }, other === state ? 1 : 0);
    if (age !== undefined) metrics.dpuRenewalAge.set(age);
    if (state === last) return;
    last = state;
    if (state === 'alive') {
      const [event, message] = ['DPUReady', `The DPU is ready: ${reason}`];
      log.info({ state, event, message, ...durations.end('') }, 'DPU is ready');
      return events.record(target, { type: 'Normal', reason: event, message });
    }
    durations.begin('');
    const [event, text] = ready ? ['DPUUnknown', 'DPU Unknown, treated as ready'] : ['DPUNotReady', 'DPU Not Ready'];
    const message = `${text}: ${reason}`;
    const fields = { state, event, message };
    if (ready) log.warn(fields, 'DPU state unknown; treating it as ready');
    else if (state === 'unproven') log.info(fields, 'waiting for the DPU to renew its lease');
    else log.warn(fields, 'DPU is not ready');
    events.record(target, { type: 'Warning', reason: event, message });
  };
}
