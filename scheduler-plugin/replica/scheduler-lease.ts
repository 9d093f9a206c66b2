import type { KubeClient } from '../../kube/client.ts';
import { createReflector } from '../../kube/reflector.ts';
import { type Lease, lease as leaseSchema } from '../../kube/resources.ts';
import { leaseSeconds } from '../../model/lease/timing.ts';
import type { Logger } from '../../runtime/log.ts';
import type { Replica } from './replica.ts';

export interface SchedulerLeaseOptions {
  readonly client: KubeClient;
  /** The Lease by which the kube-schedulers elect one: `<namespace>/<name>`. */
  readonly lease: string;
  /**
   * The host name that this process shares with its kube-scheduler, which calls itself `<host name>_<uuid>` in the
   * Lease (cmd/kube-scheduler/app/options).
   */
  readonly hostName: string;
  /** Reads what another kube-scheduler has had bound. @throws KubeError */
  readonly catchUp: (signal: AbortSignal) => Promise<void>;
  readonly onActive: () => void;
  readonly onPassive: () => void;
  readonly log: Logger;
  /** Monotonic seconds. */
  readonly now: () => number;
}

/**
 * An extender in the pod of a kube-scheduler, which is the only one that can call it. Only the kube-scheduler that leads
 * schedules, so a call is proof enough for an answer; for writes, the Lease must name this pod and be renewed.
 *
 * Invariant: no verdict is given before the pods were read that another kube-scheduler bound a moment ago. This is done
 * once for each leadership: when the Lease names this pod, or at the first call if that arrives earlier.
 */
export function createSchedulerLeaseReplica(options: SchedulerLeaseOptions): Replica {
  const { client, lease, hostName, catchUp, onActive, onPassive, log, now } = options;
  const [namespace, name] = lease.split('/');
  const running = new AbortController();
  let holder: string | undefined;
  /** When the Lease runs out, in seconds of this process's clock. */
  let validUntil = Number.NEGATIVE_INFINITY;
  let caughtUp = false;
  let active = false;
  let reading: Promise<void> | undefined;
  /** Counts leaderships: a catch-up that began in an earlier one does not count. */
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
  const ensureCaughtUp = (): Promise<void> => {
    if (caughtUp) return Promise.resolve();
    reading ??= readOnce().finally(() => {
      reading = undefined;
    });
    return reading;
  };

  const changed = (spec: Lease['spec'] | undefined): void => {
    const identity = spec?.holderIdentity === '' ? undefined : (spec?.holderIdentity ?? undefined);
    validUntil = now() + leaseSeconds(spec?.leaseDurationSeconds);
    if (identity !== holder) endTerm(identity);
    // Also at each renewal, so that a catch-up that failed is retried.
    if (isOwn(identity)) void ensureCaughtUp();
  };

  const endTerm = (next: string | undefined): void => {
    holder = next;
    term++;
    caughtUp = false;
    if (!active) return;
    active = false;
    log.info({ lease, holder }, 'this pod’s kube-scheduler no longer leads');
    onPassive();
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
    isActive: () => active && now() < validUntil,
    mayAnswer: () => caughtUp,
    called: ensureCaughtUp,
    get settled() {
      return leases.synced;
    },
    async run(signal) {
      signal.addEventListener('abort', () => running.abort(), { once: true });
      await leases.run(signal);
    },
    // kube-scheduler gives its Lease up when it ends.
    release: () => Promise.resolve(),
  };
}
