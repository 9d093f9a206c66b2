import { EventEmitter } from 'node:events';
import type { KubeClient } from '../../kube/client.ts';
import { cacheProblem, createReflector, type Watch } from '../../kube/reflector.ts';
import { type Lease, lease as leaseSchema } from '../../kube/resources.ts';
import { leaseSeconds } from '../../model/lease/timing.ts';
import { logFailure } from '../../runtime/log.ts';
import { ProblemLog } from '../../runtime/problem-log.ts';
import type { ExtenderLogger, ExtenderMessages } from '../telemetry/log-messages.ts';

export interface SchedulerLeaseOptions {
  readonly client: KubeClient;
  /** The Lease of the kube-schedulers' leader election: `<namespace>/<name>`. */
  readonly lease: string;
  /** Shared with its kube-scheduler, whose identity is `<host name>_<uuid>` (cmd/kube-scheduler/app/options). */
  readonly hostName: string;
  /** Reads the pods that another kube-scheduler has bound. @throws KubeError */
  readonly catchUp: (signal: AbortSignal) => Promise<void>;
  readonly log: ExtenderLogger;
  readonly nowSeconds: () => number;
}

export interface ReplicaEvents {
  readonly active: [];
}

/**
 * The active replica is the one in the pod of the leading kube-scheduler, the only process that can call it. A call
 * suffices as proof for an answer; for writes, the Lease must name this pod and be renewed.
 * Invariant: before any verdict, it has read the pods that another kube-scheduler bound a moment ago, once for each
 * leadership.
 */
export class SchedulerLeaseReplica extends EventEmitter<ReplicaEvents> {
  readonly #options: SchedulerLeaseOptions;
  readonly #leases: Watch;
  readonly #running = new AbortController();
  readonly #problems: ProblemLog<ExtenderMessages>;
  #holder: string | undefined;
  #validUntil = Number.NEGATIVE_INFINITY;
  #caughtUp = false;
  #active = false;
  #catchingUp: Promise<void> | undefined;
  /** Number of leaderships: a catch-up that began in an earlier one does not count. */
  #term = 0;

  constructor(options: SchedulerLeaseOptions) {
    super();
    const { client, lease, log, nowSeconds } = options;
    const [namespace, name] = lease.split('/');
    this.#options = options;
    this.#problems = new ProblemLog(log);
    this.#leases = createReflector({
      client,
      path: `/apis/coordination.k8s.io/v1/namespaces/${namespace}/leases`,
      query: { fieldSelector: `metadata.name=${name}` },
      schema: leaseSchema,
      project: ({ spec }) => spec,
      onChange: ({ after }) => this.#leaseChanged(after),
      log,
      nowSeconds,
    });
  }

  isActive(): boolean {
    return this.#active && this.#options.nowSeconds() < this.#validUntil;
  }

  /** Whether this replica may give verdicts at this moment. Call it before and after each one. */
  mayAnswer(): boolean {
    return this.#caughtUp;
  }

  /** Call it when a call of kube-scheduler has arrived. Resolves when `mayAnswer` is up to date. */
  async called(): Promise<void> {
    if (this.#caughtUp) return;
    this.#catchingUp ??= this.#catchUp().finally(() => {
      this.#catchingUp = undefined;
    });
    await this.#catchingUp;
  }

  /** Why the Lease is not known: see cacheProblem. */
  get problem(): string | undefined {
    return cacheProblem({ 'the scheduler’s Lease': this.#leases }, this.#options.nowSeconds());
  }

  async run(signal: AbortSignal): Promise<void> {
    signal.addEventListener('abort', () => this.#running.abort(), { once: true });
    await this.#leases.run(signal);
  }

  #isOwn(identity: string | undefined): boolean {
    return identity?.startsWith(`${this.#options.hostName}_`) === true;
  }

  #leaseChanged(spec: Lease['spec'] | undefined): void {
    const identity = spec?.holderIdentity === '' ? undefined : (spec?.holderIdentity ?? undefined);
    this.#validUntil = this.#options.nowSeconds() + leaseSeconds(spec?.leaseDurationSeconds);
    if (identity !== this.#holder) this.#endTerm(identity);
    // Also call it at each renewal, to retry a failed catch-up.
    if (this.#isOwn(identity)) this.called().catch(logFailure(this.#options.log));
  }

  #endTerm(holder: string | undefined): void {
    const { lease, log } = this.#options;
    this.#holder = holder;
    this.#term++;
    this.#caughtUp = false;
    if (!this.#active) return;
    this.#active = false;
    log.info({ lease, holder }, 'this pod’s kube-scheduler no longer leads');
  }

  async #catchUp(): Promise<void> {
    const { lease, catchUp, log } = this.#options;
    const term = this.#term;
    try {
      await catchUp(this.#running.signal);
    } catch (err) {
      if (!this.#running.signal.aborted) this.#problems.failed(err, 'reading recently bound pods failed');
      return;
    }
    this.#problems.recovered();
    if (term !== this.#term) return;
    this.#caughtUp = true;
    if (this.#active || !this.#isOwn(this.#holder)) return;
    this.#active = true;
    log.info({ lease, holder: this.#holder }, 'this pod’s kube-scheduler leads');
    this.emit('active');
  }
}
