import type { GateScope } from './decide.ts';

/**
 * What the agent leaves behind for the shim to decide by when it does not answer, and for itself to go on from.
 * native/cni/state.h is the other side of it.
 */
export interface GateState {
  /** `none`: this node has no DPU. */
  readonly dpu: 'ready' | 'not-ready' | 'none';
  readonly reason: string;
  /** Whether STATUS tells of the DPU. */
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

/** The shim takes the reason out as it stands: nothing in it may need an escape. */
export function formatGateState(state: GateState): string {
  const plain = state.reason.replaceAll(/["\\\p{Cc}]/gu, ' ');
  return `${JSON.stringify({ ...state, reason: plain })}\n`;
}
