import type { AgentLease } from '../../model/lease/agent-health.ts';
import { leaseSeconds } from '../../model/lease/timing.ts';
import { createReflector, type Reflector, type WatchOptions } from '../reflector.ts';
import { type Lease, lease as leaseSchema } from '../resources.ts';

export const leasesPath = (namespace: string): string => `/apis/coordination.k8s.io/v1/namespaces/${namespace}/leases`;

/** The Lease of a node's agent or DPU, which has the prefix and the node's name; undefined for any other. */
export function nodeLease({ metadata, spec }: Lease, prefix: string): AgentLease | undefined {
  if (!metadata.name?.startsWith(prefix)) return undefined;
  const node = metadata.name.slice(prefix.length);
  return { node, renewTime: spec?.renewTime, duration: spec?.leaseDurationSeconds };
}

/** A Lease of leader election. */
export interface ElectionLease extends Omit<AgentLease, 'node'> {
  /** '' if no replica leads. */
  readonly holder: string;
}

export function electionLease({ spec }: Lease): ElectionLease {
  return { holder: spec?.holderIdentity ?? '', renewTime: spec?.renewTime, duration: spec?.leaseDurationSeconds };
}

/** The host name in an identity `<host name>_<uuid>` (cmd/kube-scheduler/app/options); '' if it has none. */
export function hostOfHolder(holder: string): string {
  return holder.slice(0, Math.max(0, holder.lastIndexOf('_')));
}

/**
 * The leader of an election. Owner: the Lease, whose renewals are observed here, as clocks are not compared. Age: a
 * renewal counts for the duration that the Lease had then; the first reading counts as one. End: the Lease is deleted.
 */
export class Leader {
  #lease: ElectionLease | undefined;
  #renewedAt = Number.NEGATIVE_INFINITY;
  #duration = 0;

  /** @param lease undefined: it was deleted @param nowSeconds monotonic */
  leaseChanged(lease: ElectionLease | undefined, nowSeconds: number): void {
    const before = this.#lease;
    this.#lease = lease;
    if (lease === undefined) return;
    const isRenewal = before?.holder !== lease.holder || before.renewTime !== lease.renewTime;
    const duration = leaseSeconds(lease.duration);
    this.#duration = isRenewal ? duration : Math.min(duration, this.#duration);
    if (isRenewal) this.#renewedAt = nowSeconds;
  }

  /** Undefined: there is no Lease; '': no replica leads. */
  get holder(): string | undefined {
    return this.#lease?.holder;
  }

  /** @param lastHeard of the watch: without news from it, a Lease without a renewal proves nothing */
  silentSeconds(nowSeconds: number, lastHeard = nowSeconds): number {
    return Math.min(nowSeconds, lastHeard) - this.#renewedAt;
  }

  hasExpired(nowSeconds: number, lastHeard = nowSeconds): boolean {
    return this.silentSeconds(nowSeconds, lastHeard) >= this.#duration;
  }
}

/** Watches one Lease of leader election. @param changed called at each change, after the leader has it */
export function createLeaderReflector(
  { namespace, name, ...options }: WatchOptions & { readonly namespace: string; readonly name: string },
  leader: Leader,
  changed?: () => void,
): Reflector<ElectionLease> {
  return createReflector({
    ...options,
    path: leasesPath(namespace),
    query: { fieldSelector: `metadata.name=${name}` },
    schema: leaseSchema,
    project: electionLease,
    onChange: ({ after }) => {
      leader.leaseChanged(after, options.nowSeconds());
      changed?.();
    },
  });
}
