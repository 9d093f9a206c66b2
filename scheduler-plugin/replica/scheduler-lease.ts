import type { KubeClient } from '../../kube/client.ts';
import { cacheProblem, createReflector } from '../../kube/reflector.ts';
import { type Lease, lease as leaseSchema } from '../../kube/resources.ts';
import { leaseSeconds } from '../../model/lease/timing.ts';
import type { ExtenderLogger } from '../telemetry/log-messages.ts';

/**
 * Whether this process is the active replica. Several replicas watch the cluster; one answers kube-scheduler and writes
 * to the cluster.
 */
export type Replica = ReturnType<typeof createSchedulerLeaseReplica>;

export interface SchedulerLeaseOptions {
  readonly client: KubeClient;
  /** The Lease of the kube-schedulers' leader election: `<namespace>/<name>`. */
  readonly lease: string;
  /**
   * The host name that this process shares with its kube-scheduler, whose identity in the Lease is `<host name>_<uuid>`
   * (cmd/kube-scheduler/app/options).
   */
  readonly hostName: string;
  /** Reads the pods that another kube-scheduler has bound. @throws KubeError */
  readonly catchUp: (signal: AbortSignal) => Promise<void>;
  readonly onActive: () => void;
  readonly log: ExtenderLogger;
  /** Monotonic seconds. */
  readonly now: () => number;
}

/**
 * An extender in the pod of a kube-scheduler, the only process that can call it. Only the leading kube-scheduler
 * schedules, so a call suffices as proof for an answer; for writes, the Lease must name this pod and be renewed.
 *
 * Invariant: before any verdict, the replica has read the pods that another kube-scheduler bound a moment ago. It does
 * so once for each leadership: when the Lease names this pod, or at the first call if that arrives earlier.
 */
export function createSchedulerLeaseReplica(options: SchedulerLeaseOptions) {
  const { client, lease, hostName, catchUp, onActive, log, now } = options;
  const [namespace, name] = lease.split('/');
  const running = new AbortController();
  let holder: string | undefined;
  /** When the Lease expires, in seconds of this process's clock. */
  let validUntil = Number.NEGATIVE_INFINITY;
  let caughtUp = false;
  let active = false;
  let reading: Promise<void> | undefined;
  /** Number of leaderships: a catch-up that began in an earlier one does not count. */
  let term = 0;

  const isOwn = (identity: string | undefined) => identity?.startsWith(`${hostName}_`) === true;

  const begin = (): void => {
    if (active || !caughtUp || !isOwn(holder)) return;
    active = true;
    log.info({ lease, holder }, 'this pod’s kube-scheduler leads');
    onActive();
  };

  const readOnce = async (): Promise<void> => {
    const during = term;
    try {
      await catchUp(running.signal);
    } catch (err) {
      if (!running.signal.aborted) log.warn({ err }, 'reading recently bound pods failed');
      return;
    }
    if (during !== term) return;
    caughtUp = true;
    begin();
  };
  const ensureCaughtUp = async (): Promise<void> => {
    if (caughtUp) return;
    reading ??= readOnce().finally(() => {
      reading = undefined;
    });
    await reading;
  };

  const changed = (spec: Lease['spec'] | undefined): void => {
    const identity = spec?.holderIdentity === '' ? undefined : (spec?.holderIdentity ?? undefined);
    validUntil = now() + leaseSeconds(spec?.leaseDurationSeconds);
    if (identity !== holder) endTerm(identity);
    // Also call it at each renewal, to retry a failed catch-up.
    if (isOwn(identity)) void ensureCaughtUp();
  };

  const endTerm = (next: string | undefined): void => {
    holder = next;
    term++;
    caughtUp = false;
    if (!active) return;
    active = false;
    log.info({ lease, holder }, 'this pod’s kube-scheduler no longer leads');
  };

  const leases = createReflector({
    client,
    path: `/apis/coordination.k8s.io/v1/namespaces/${namespace}/leases`,
    query: { fieldSelector: `metadata.name=${name}` },
    schema: leaseSchema,
    project: ({ spec }) => spec,
    onChange: ({ after }) => changed(after),
    log,
    now,
  });

  return {
    /** Whether this replica may write to the cluster at this moment. */
    isActive: () => active && now() < validUntil,
    /** Whether this replica may give verdicts at this moment. Call it before and after each one. */
    mayAnswer: () => caughtUp,
    /** Call it when a call of kube-scheduler has arrived. Resolves when `mayAnswer` is up to date. */
    called: ensureCaughtUp,
    /** Why the Lease is not known: see cacheProblem. */
    get problem() {
      return cacheProblem({ 'the scheduler’s Lease': leases }, now());
    },
    /** Never rejects. */
    async run(signal: AbortSignal) {
      signal.addEventListener('abort', () => running.abort(), { once: true });
      await leases.run(signal);
    },
  };
}
