import { EventEmitter } from 'node:events';
import { createLeaderReflector, hostOfHolder, Leader } from '../../kube/cluster-view/leases.ts';
import { cacheProblem, type Watch } from '../../kube/reflector.ts';
import { logFailure } from '../../runtime/log.ts';
import { ProblemLog } from '../../runtime/problem-log.ts';
import type { ExtenderContext } from '../telemetry/context.ts';
import type { ExtenderMessages } from '../telemetry/log-messages.ts';

interface SchedulerLeaseOptions extends Pick<ExtenderContext, 'client' | 'log' | 'nowSeconds'> {
  /** The Lease of the kube-schedulers' leader election: `<namespace>/<name>`. */
  readonly lease: string;
  /** Shared with its kube-scheduler, whose identity contains it. */
  readonly hostName: string;
  /** Reads the pods that another kube-scheduler has bound. @throws KubeError */
  readonly catchUp: (signal: AbortSignal) => Promise<void>;
}

/**
 * The active replica is the one in the pod of the leading kube-scheduler, the only process that can call it. A call
 * suffices as proof for an answer; for writes, the Lease must name this pod and be renewed.
 * Invariant: before any verdict, it has read the pods that another kube-scheduler bound a moment ago, once for each
 * leadership.
 */
export class SchedulerLeaseReplica extends EventEmitter<{ readonly active: [] }> {
  readonly #options: SchedulerLeaseOptions;
  readonly #leader = new Leader();
  readonly #leases: Watch;
  readonly #running = new AbortController();
  readonly #problems: ProblemLog<ExtenderMessages>;
  /** The holder for which the other fields are. */
  #holder: string | undefined;
  #caughtUp = false;
  #active = false;
  #catchingUp: Promise<void> | undefined;
  /** Number of leaderships: a catch-up that began in an earlier one does not count. */
  #term = 0;

  constructor(options: SchedulerLeaseOptions) {
    super();
    const { client, lease, log, nowSeconds } = options;
    const [namespace = '', name = ''] = lease.split('/');
    this.#options = options;
    this.#problems = new ProblemLog(log);
    this.#leases = createLeaderReflector({ namespace, name, client, log, nowSeconds }, this.#leader, () =>
      this.#leaseChanged(),
    );
  }

  isActive(): boolean {
    return this.#active && !this.#leader.hasExpired(this.#options.nowSeconds());
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

  #isHeldByThisHost(): boolean {
    return this.#holder !== undefined && hostOfHolder(this.#holder) === this.#options.hostName;
  }

  #leaseChanged(): void {
    const holder = this.#leader.holder || undefined;
    if (holder !== this.#holder) this.#endTerm(holder);
    // Also call it at each renewal, to retry a failed catch-up.
    if (this.#isHeldByThisHost()) this.called().catch(logFailure(this.#options.log));
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
    if (this.#active || !this.#isHeldByThisHost()) return;
    this.#active = true;
    log.info({ lease, holder: this.#holder }, 'this pod’s kube-scheduler leads');
    this.emit('active');
  }
}
