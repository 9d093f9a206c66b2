import * as z from 'zod';
import { formatGateState, type GateState, type ObservedLease } from '../../model/cni/decide.ts';
import { resultOrNone } from '../../model/json.ts';
import type { LeaseObservation } from '../../model/lease/observer.ts';
import { readBounded } from '../files/bounded-file.ts';
import { type OnFileProblem, StateFile } from '../files/state-file.ts';
import { machineSeconds } from '../processes/proc.ts';
import type { AgentLogger } from '../telemetry/log-messages.ts';

/** Bytes. The shim reads less than 16 KiB of it. */
const MAX_STATE_BYTES = 64 * 1024;

/**
 * What the shim uses while no agent answers. Owner: the agent with the lock; the shim and the next agent read it. Age: as old
 * as the last read of the Lease. End: a reboot, disabling the gate, and for the shim a day without an agent. What an
 * earlier agent wrote is never the new value: `readObservedLease` reads its part.
 */
export function gateStateFile(path: string, log: AgentLogger, onProblem?: OnFileProblem): StateFile<GateState> {
  const options = { path, maxBytes: MAX_STATE_BYTES, permissions: 0o644, log, onProblem };
  return new StateFile({ ...options, format: formatGateState, parse: () => undefined });
}

const stored = z.object({
  lease: z.object({
    bootId: z.string(),
    renewTime: z.string().max(64),
    changedAt: z.number().nonnegative(),
    readAt: z.number().nonnegative(),
    changes: z.number().int().nonnegative(),
  }),
});

/** Without it, a restarted agent would report a live DPU as never seen alive. @param now of CLOCK_MONOTONIC, s */
export function readObservedLease(path: string, bootId: string | undefined, now = machineSeconds()) {
  const lease = resultOrNone(() => stored.parse(JSON.parse(readBounded(path, MAX_STATE_BYTES))).lease);
  if (lease === undefined || lease.bootId !== bootId) return undefined;
  const { renewTime, changedAt, readAt, changes } = lease;
  // A time in the future would keep a dead DPU alive until then.
  if (changedAt > now * 1000 || readAt > now * 1000) return undefined;
  const since = changedAt / 1000;
  return { since, renewTime, changedAt: since, changes, answeredAt: readAt / 1000 } satisfies LeaseObservation;
}

/** The part of an observation that is worth saving; undefined until a renewal was seen. */
export function observedLease(observation: LeaseObservation, bootId: string | undefined): ObservedLease | undefined {
  const { renewTime, changedAt, answeredAt, changes } = observation;
  if (bootId === undefined || renewTime === undefined || changedAt === undefined || answeredAt === undefined) return;
  const millis = (seconds: number) => Math.floor(seconds * 1000);
  return { bootId, renewTime, changedAt: millis(changedAt), readAt: millis(answeredAt), changes };
}
