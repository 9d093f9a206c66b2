import type { GateScope } from './decide.ts';

/**
 * The state that the agent saves for the shim, which uses it while the agent does not answer, and for its own restart.
 * native/cni/state.h is the other side of it.
 */
export interface GateState {
  /** `none`: this node has no DPU. */
  readonly dpu: 'ready' | 'not-ready' | 'none';
  readonly reason: string;
  /** Whether STATUS reports the DPU. */
  readonly status: boolean;
  readonly scope: GateScope;
  readonly exempt: readonly string[];
  /** Milliseconds of CLOCK_MONOTONIC, whole. */
  readonly at: number;
  /** Milliseconds after which it is stale, whole. */
  readonly staleAfter: number;
  readonly whenStale: 'last-known' | 'open' | 'closed';
  /** What was last seen of the lease; undefined where none is watched. */
  readonly lease?: ObservedLease | undefined;
}

/** The last renewal that was seen, by a clock that all processes share until the machine is started again. */
export interface ObservedLease {
  /** Tells one run of the machine from the next. */
  readonly bootId: string;
  readonly renewTime: string;
  /** Milliseconds of CLOCK_MONOTONIC when this renewal was first seen, and when the lease was last read. */
  readonly changedAt: number;
  readonly readAt: number;
  readonly changes: number;
}

/** Characters of a reason, and of a renewTime that is kept: the shim reads files of less than 16 KiB. */
const LONGEST_REASON = 512;
const LONGEST_TIME = 64;

/** The shim takes the reason out as it stands: nothing in it may need an escape. */
export function formatGateState({ lease, ...state }: GateState): string {
  const plain = state.reason.slice(0, LONGEST_REASON).replaceAll(/["\\\p{Cc}]/gu, ' ');
  const kept = lease !== undefined && lease.renewTime.length <= LONGEST_TIME ? { lease } : {};
  return `${JSON.stringify({ ...state, reason: plain, ...kept })}\n`;
}
