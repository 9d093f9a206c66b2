import type { GateScope } from './decide.ts';

/**
 * The state that the agent saves for its own restart, and for the shim to use while the agent does not respond.
 * native/cni/state.h parses it.
 */
export interface GateState {
  /** `none`: this node has no DPU. */
  readonly dpu: 'ready' | 'not-ready' | 'none';
  readonly reason: string;
  /** Whether STATUS reports the DPU. */
  readonly status: boolean;
  readonly scope: GateScope;
  readonly exempt: readonly string[];
  /** Whole milliseconds of CLOCK_MONOTONIC. */
  readonly at: number;
  /** The last observation of the lease; undefined if the agent watches none. */
  readonly lease?: ObservedLease | undefined;
}

/** The last observed renewal, by a clock that all processes share until the machine reboots. */
export interface ObservedLease {
  /** Identifies the current boot of the machine. */
  readonly bootId: string;
  readonly renewTime: string;
  /** Milliseconds of CLOCK_MONOTONIC of the first observation of this renewal and of the last read of the lease. */
  readonly changedAt: number;
  readonly readAt: number;
  readonly changes: number;
}

/** Characters of a reason and of a renewTime: the shim reads files of less than 16 KiB. */
const LONGEST_REASON = 512;
const LONGEST_TIME = 64;

/** The text of the state file. The shim reads the reason verbatim: it must not need escapes. */
export function formatGateState({ lease, ...state }: GateState): string {
  const plain = state.reason.slice(0, LONGEST_REASON).replaceAll(/["\\\p{Cc}]/gu, ' ');
  const kept = lease !== undefined && lease.renewTime.length <= LONGEST_TIME ? { lease } : {};
  return `${JSON.stringify({ ...state, reason: plain, ...kept })}\n`;
}
