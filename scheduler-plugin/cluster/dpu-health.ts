import { EventEmitter } from 'node:events';
import { isNotFound } from '../../kube/client.ts';
import { leasesPath, type NodeLease } from '../../kube/cluster-view/leases.ts';
import { lease as leaseSchema } from '../../kube/resources.ts';
import type { DpuRestart } from '../../model/lease/dpu-run.ts';
import {
  isReady,
  judgeLease,
  type LeaseObservation,
  type LeaseReading,
  type LeaseState,
  type LeaseVerdict,
  NOTHING_OBSERVED,
  observeLease,
  renewalTime,
} from '../../model/lease/observer.ts';
import { isReleased } from '../../model/lease/repair.ts';
import { DEFAULT_LEASE_SECONDS, leaseSeconds } from '../../model/lease/timing.ts';
import { DPU_LEASE_PREFIX } from '../../model/names.ts';
import { logFailure } from '../../runtime/log.ts';
import { Durations } from '../../runtime/problem-log.ts';
import type { ExtenderContext } from '../telemetry/context.ts';

export interface LeaseView extends NodeLease {
  /** Its host runs with the health check off: missing renewals mean nothing. */
  readonly released?: boolean;
  /** Of a DPU whose check is on: its last restart that its agent recorded. */
  readonly restart?: DpuRestart | undefined;
}

export interface DpuVerdict extends Pick<LeaseVerdict, 'state' | 'age'> {
  readonly ready: boolean;
}

interface DpuHealthOptions extends Pick<ExtenderContext, 'client' | 'log' | 'nowSeconds'> {
  readonly namespace: string;
  /** Whether a DPU counts as alive while the API server does not answer. */
  readonly whenUnknown: 'ready' | 'not-ready';
  /** Consecutive renewals before a DPU counts as alive, given the seconds that one is valid. */
  readonly proof: (duration: number) => number;
  /** By name; `dpuReady` is the status of the condition plumbline.dev/DPUReady. */
  readonly nodes: ReadonlyMap<string, Readonly<Record<'uid' | 'dpuReady', string | undefined> & { dpuHost: boolean }>>;
}

interface DpuHealthEvents {
  /** The first, and each one whose state or readiness differs. Undefined: nothing is kept of the node's DPU. */
  readonly changed: [node: string, verdict: DpuVerdict | undefined];
}

class Watched {
  observation: LeaseObservation = NOTHING_OBSERVED;
  /** Seconds that the last renewal is valid. */
  duration: number = DEFAULT_LEASE_SECONDS;
  renewTime: string | undefined;
  ready = false;
  state: LeaseState | undefined;
  timer: NodeJS.Timeout | undefined;
  /** Of its Node. */
  uid: string | undefined;
  /** Whether the API server last reported that there is no such Lease. */
  missing = false;
}

/** Seconds after which a read of a Lease counts as failed. */
const READ_TIMEOUT_SECONDS = 5;

/**
 * Whether each node's DPU is alive, by its Lease. A silent watch proves nothing: an overdue Lease is read once before
 * its DPU counts as dead, and again every few seconds. Nothing is kept of a deleted Lease whose node is no DPU host.
 * A replica that has just started uses the condition that the previous one wrote, for the duration of a Lease.
 */
export class DpuMonitor extends EventEmitter<DpuHealthEvents> {
  readonly #options: DpuHealthOptions;
  readonly #watched = new Map<string, Watched>();
  readonly #released = new Set<string>();
  readonly #outages = new Durations();

  constructor(options: DpuHealthOptions) {
    super();
    this.#options = options;
  }

  /** @param view undefined if the Lease was deleted */
  leaseChanged(node: string, view: LeaseView | undefined): void {
    if (view?.released === true) {
      this.#release(node);
      return;
    }
    // Deleting a released Lease changes nothing.
    if (this.#released.delete(node) && view === undefined) return;
    const dpu = this.#watched.get(node) ?? new Watched();
    dpu.uid ??= this.#options.nodes.get(node)?.uid;
    this.#watched.set(node, dpu);
    if (view !== undefined) dpu.duration = durationAfter(dpu, view);
    this.#take(node, dpu, view === undefined ? { kind: 'missing' } : { kind: 'read', renewTime: view.renewTime });
  }

  /** The node was added or removed, or became or stopped being a DPU host. */
  nodeChanged(node: string): void {
    const dpu = this.#watched.get(node);
    if (dpu === undefined) return;
    this.#checkUid(node, dpu);
    this.#settle(node, dpu);
  }

  verdict(node: string): DpuVerdict {
    const dpu = this.#watched.get(node);
    if (dpu !== undefined) return this.#verdictOf(node, dpu);
    // Without a Lease, the feature is off for this node or its agent has not started: nothing proves that the DPU is
    // dead.
    const ready = this.#released.has(node) || this.#options.whenUnknown === 'ready';
    return { ready, state: 'unknown', age: undefined };
  }

  isDpuHost(node: string): boolean {
    return this.#options.nodes.get(node)?.dpuHost === true;
  }

  isReleased(node: string): boolean {
    return this.#released.has(node);
  }

  stop(): void {
    for (const { timer } of this.#watched.values()) clearTimeout(timer);
    this.#watched.clear();
  }

  #termsOf({ duration }: Watched) {
    return { duration, proof: this.#options.proof(duration) };
  }

  #verdictOf(node: string, dpu: Watched): DpuVerdict {
    const { nodes, whenUnknown, nowSeconds } = this.#options;
    const { state, age, until } = judgeLease(dpu.observation, nowSeconds(), this.#termsOf(dpu));
    const isVouchedFor = state === 'unproven' && until !== undefined && nodes.get(node)?.dpuReady === 'True';
    return { state, age, ready: isReady(state, whenUnknown) || isVouchedFor };
  }

  #settle(node: string, dpu: Watched): void {
    if (dpu.missing && !this.isDpuHost(node)) {
      this.#forget(node);
      return;
    }
    const { log } = this.#options;
    const verdict = this.#verdictOf(node, dpu);
    const { state, ready, age } = verdict;
    const isNews = state !== dpu.state || ready !== dpu.ready;
    const fields = { node, state, ready, ...(age !== undefined && { renewedSecondsAgo: Math.round(age) }) };
    if (ready && !dpu.ready) log.info({ ...fields, ...this.#outages.end(node) }, 'DPU is ready');
    if (!ready && dpu.ready) {
      this.#outages.begin(node);
      log.warn(fields, 'DPU is not ready');
    }
    dpu.ready = ready;
    dpu.state = state;
    this.#schedule(node, dpu);
    if (isNews) this.emit('changed', node, verdict);
  }

  #schedule(node: string, dpu: Watched): void {
    const { log, nowSeconds } = this.#options;
    clearTimeout(dpu.timer);
    if (!this.isDpuHost(node)) return;
    const { until } = judgeLease(dpu.observation, nowSeconds(), this.#termsOf(dpu));
    const wait = until === undefined ? Math.max(1, dpu.duration / 4) : until - nowSeconds() + 0.01;
    dpu.timer = setTimeout(() => this.#reconcile(node, dpu).catch(logFailure(log)), wait * 1000).unref();
  }

  async #reconcile(node: string, dpu: Watched): Promise<void> {
    const reading = await this.#read(node);
    if (this.#watched.get(node) !== dpu) return;
    if (reading.kind === 'released') this.#release(node);
    else this.#take(node, dpu, reading);
  }

  #release(node: string): void {
    if (!this.#released.has(node)) this.#options.log.info({ node }, 'DPU health check off');
    this.#released.add(node);
    this.#forget(node);
  }

  #take(node: string, dpu: Watched, reading: LeaseReading): void {
    dpu.observation = observeLease(dpu.observation, reading, this.#options.nowSeconds(), this.#termsOf(dpu));
    dpu.missing = reading.kind === 'failed' ? dpu.missing : reading.kind === 'missing';
    this.#settle(node, dpu);
  }

  /** A Node created again may be another machine: earlier observations prove nothing about its DPU. */
  #checkUid(node: string, dpu: Watched): void {
    const { nodes, nowSeconds } = this.#options;
    const uid = nodes.get(node)?.uid ?? dpu.uid;
    const reading = { kind: 'read', renewTime: dpu.renewTime } as const;
    if (dpu.uid !== undefined && uid !== dpu.uid)
      dpu.observation = observeLease(NOTHING_OBSERVED, reading, nowSeconds(), this.#termsOf(dpu));
    dpu.uid = uid;
  }

  #forget(node: string): void {
    clearTimeout(this.#watched.get(node)?.timer);
    this.#watched.delete(node);
    this.#outages.end(node);
    this.emit('changed', node, undefined);
  }

  async #read(node: string): Promise<LeaseReading | { readonly kind: 'released' }> {
    const { client, namespace } = this.#options;
    const path = `${leasesPath(namespace)}/${DPU_LEASE_PREFIX}${node}`;
    try {
      const { spec } = leaseSchema.parse(await client.get(path, { timeout: READ_TIMEOUT_SECONDS }));
      return isReleased(spec) ? { kind: 'released' } : { kind: 'read', renewTime: spec?.renewTime };
    } catch (err) {
      return isNotFound(err) ? { kind: 'missing' } : { kind: 'failed' };
    }
  }
}

/** The duration that the Lease had at that time: a longer one written later revives nothing. */
function durationAfter(dpu: Watched, { renewTime, duration }: LeaseView): number {
  const seconds = leaseSeconds(duration);
  const isRenewal = renewTime !== dpu.renewTime || renewTime === undefined;
  dpu.renewTime = renewTime;
  return isRenewal ? seconds : Math.min(seconds, dpu.duration);
}

/** @param age seconds since the last renewal; undefined if there was none */
export function lastRenewalText(age: number | undefined): string {
  return age === undefined ? 'its lease was never renewed' : `last renewal ${renewalTime(age, Date.now())}`;
}
