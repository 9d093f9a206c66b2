import type { KubeClient } from '../../kube/client.ts';
import { isNotFound } from '../../kube/errors.ts';
import type { DpuWord } from '../../model/cni/decide.ts';
import { describeLease } from '../../model/lease/describe.ts';
import {
  isReady,
  judgeLease,
  type LeaseObservation,
  type LeaseReading,
  type LeaseVerdict,
  NOTHING_OBSERVED,
  observeLease,
} from '../../model/lease/observer.ts';
import { type LeaseTiming, observationPeriod } from '../../model/lease/timing.ts';
import { underSignals } from '../../runtime/signals.ts';
import { sleep } from '../../runtime/time.ts';
import { type LeaseName, readLease } from '../kube-objects/lease.ts';

export interface DpuHealthDeps {
  readonly client: KubeClient;
  readonly lease: LeaseName;
  readonly timing: LeaseTiming;
  /** Renewals in a row before the DPU counts as alive: more than 1 where OVN-Kubernetes' host side writes the lease too. */
  readonly proof: number;
  /** Whether the DPU counts as ready while the API server cannot be asked. */
  readonly whenUnknown: 'ready' | 'not-ready';
  /** What an earlier process of this agent saw, on the same clock. */
  readonly before?: LeaseObservation | undefined;
  /** Seconds of a monotonic clock. */
  readonly now: () => number;
}

export interface DpuHealthReport extends DpuWord, LeaseVerdict {}

/** `flipped`: whether ready is another than before. */
export type HealthListener = (report: DpuHealthReport, flipped: boolean) => void;

export interface DpuHealth {
  /** The present verdict; right at every moment, not only after a look. */
  current(): DpuHealthReport;
  observation(): LeaseObservation;
  /** Calls the listener after each look at the lease. @returns a function that ends that */
  subscribe(listener: HealthListener): () => void;
  /** The duty: looks at the lease until the signal aborts. Never writes it. */
  run(signal: AbortSignal): Promise<void>;
  /** One look. @returns seconds until the next is due */
  look(signal: AbortSignal): Promise<number>;
}

/** Seconds that one look may wait for the API server; a look that takes longer is a look that failed. */
const READ_TIMEOUT = 5;
/** Looks are this often, in parts of the duration, while the DPU is not alive: whoever waits for it waits no longer. */
const WAITING_SHARE = 20;
const SHORTEST = 0.05;

/**
 * Whether the node's DPU is alive, seen from the host: by reading its lease and watching it change. A look is due once
 * in each renewal, and at the very moment at which silence turns into death, so that this is known then and not a
 * period later.
 */
export function createDpuHealth(deps: DpuHealthDeps): DpuHealth {
  const { client, lease, timing, now, whenUnknown } = deps;
  const { duration } = timing;
  const options = { duration, proof: deps.proof };
  const listeners = new Set<HealthListener>();
  let observation = deps.before ?? NOTHING_OBSERVED;
  /** Until the first answer: when the process before this one read the lease for the last time. */
  let readBefore = deps.before?.answeredAt;
  let lastReady: boolean | undefined;

  const current = (): DpuHealthReport => {
    const verdict = judgeLease(observation, now(), options);
    const reason = describeLease(verdict, { lease: lease.name, duration });
    return { ...verdict, ready: isReady(verdict.state, whenUnknown), reason };
  };

  const read = async (signal: AbortSignal): Promise<LeaseReading> => {
    try {
      const { spec } = await underSignals([signal], READ_TIMEOUT, (limit) => readLease(client, lease, limit));
      return { kind: 'read', renewTime: spec?.renewTime };
    } catch (error) {
      return isNotFound(error) ? { kind: 'missing' } : { kind: 'failed' };
    }
  };

  const take = (reading: LeaseReading): void => {
    if (reading.kind === 'failed') return;
    // A renewal that came between two looks may be as old as the last look before: it counts from then.
    observation = { ...observeLease(observation, reading, readBefore ?? now(), options), answeredAt: now() };
    readBefore = undefined;
  };

  const look = async (signal: AbortSignal): Promise<number> => {
    take(await read(signal));
    const report = current();
    const flipped = report.ready !== lastReady;
    lastReady = report.ready;
    for (const listener of listeners) listener(report, flipped);
    if (report.state !== 'alive') return Math.max(SHORTEST, Math.min(1, duration / WAITING_SHARE));
    const untilDeath = (report.until ?? Number.POSITIVE_INFINITY) - now();
    return Math.max(SHORTEST, Math.min(observationPeriod(timing), untilDeath + SHORTEST));
  };

  return {
    current,
    observation: () => observation,
    look,
    subscribe(listener) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    async run(signal) {
      while (!signal.aborted) await sleep(await look(signal), signal).catch(() => undefined);
    },
  };
}
