import { leaseSeconds } from '../../model/lease/timing.ts';
import { createReflector, type Reflector, type WatchOptions } from '../reflector.ts';
import { type Lease, lease as leaseSchema } from '../resources.ts';

export const leasesPath = (namespace: string): string => `/apis/coordination.k8s.io/v1/namespaces/${namespace}/leases`;

/** When a Lease was last renewed, as observed here: clocks are not compared. */
export interface Renewal {
  /** Differs after each renewal; undefined: the Lease was never renewed. */
  readonly version: string | undefined;
  /** Monotonic seconds. */
  readonly at: number;
  /** Seconds that it counts: those that the Lease had then, or fewer if it has fewer now. */
  readonly duration: number;
  /** Whether a change was observed. The first reading counts as a renewal, and proves none. */
  readonly isProven: boolean;
}

/** The last renewal after a reading of the Lease. @param duration as the Lease has it, in seconds */
export function renewalAfter(
  before: Renewal | undefined,
  version: string | undefined,
  duration: number | undefined,
  nowSeconds: number,
): Renewal {
  const seconds = leaseSeconds(duration);
  const isRenewed = before === undefined || (version !== undefined && version !== before.version);
  if (isRenewed) return { version, at: nowSeconds, duration: seconds, isProven: before !== undefined };
  return { ...before, duration: Math.min(seconds, before.duration) };
}

/** The Lease of a node's agent or DPU. */
export interface NodeLease {
  readonly node: string;
  readonly renewTime: string | undefined;
  /** In seconds. */
  readonly duration: number | undefined;
}

/** The Lease with the prefix and the node's name; undefined for any other. */
export function nodeLease({ metadata, spec }: Lease, prefix: string): NodeLease | undefined {
  if (!metadata.name?.startsWith(prefix)) return undefined;
  const node = metadata.name.slice(prefix.length);
  return { node, renewTime: spec?.renewTime, duration: spec?.leaseDurationSeconds };
}

/** A Lease of leader election. */
export interface ElectionLease extends Omit<NodeLease, 'node'> {
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

/** The leader of an election. Owner: the Lease. Age: see Renewal. End: the Lease is deleted. */
export class Leader {
  #lease: ElectionLease | undefined;
  #renewal: Renewal | undefined;

  /** @param lease undefined: it was deleted @param nowSeconds monotonic */
  leaseChanged(lease: ElectionLease | undefined, nowSeconds: number): void {
    const before = this.#lease && this.#renewal;
    this.#lease = lease;
    if (lease === undefined) return;
    this.#renewal = renewalAfter(before, `${lease.holder} ${lease.renewTime}`, lease.duration, nowSeconds);
  }

  /** Undefined: there is no Lease; '': no replica leads. */
  get holder(): string | undefined {
    return this.#lease?.holder;
  }

  /** @param lastHeard of the watch: without news from it, a Lease without a renewal proves nothing */
  silentSeconds(nowSeconds: number, lastHeard = nowSeconds): number {
    return Math.min(nowSeconds, lastHeard) - (this.#renewal?.at ?? Number.NEGATIVE_INFINITY);
  }

  hasExpired(nowSeconds: number, lastHeard = nowSeconds): boolean {
    return this.silentSeconds(nowSeconds, lastHeard) >= (this.#renewal?.duration ?? 0);
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
