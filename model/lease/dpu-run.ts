import * as z from 'zod';
import { connectionsWrittenAt, dpuConnections } from '../cni/connection-status.ts';
import { parseJson } from '../json.ts';
import type { ConditionShape, ManagedFields, Optional } from '../shapes.ts';

const MAX_RECORD_CHARACTERS = 2048;
const MAX_ID_CHARACTERS = 64;

const run = z.object({
  bootId: z.string().min(1).max(MAX_ID_CHARACTERS),
  /** Of ovs-vswitchd. */
  pid: z.number().int().positive(),
  /** When that process started, in clock ticks since the boot; absent if its process is hidden from the agent. */
  start: z.number().int().nonnegative().optional(),
  /** When its pidfile was written, in milliseconds since 1970 by the DPU's clock of that time: only compared for equality. */
  pidfile: z.number().int().optional(),
});
const record = run.extend({
  restart: z
    .object({
      previous: run,
      /** When the current run began, RFC 3339 by the API server's clock. */
      at: z.iso.datetime({ offset: true }),
    })
    .optional(),
});

/** One run of a DPU and its Open vSwitch: what differs after a restart, whatever the DPU's clock says. */
export type DpuRun = Readonly<z.infer<typeof run>>;

/**
 * What a DPU's Lease says about its runs (DPU_RUN_ANNOTATION). Owner: the DPU's agent. Age: of the last renewal. End: of
 * `restart`, the next restart, or its removal by an administrator; of the record, the Lease.
 */
export type DpuRunRecord = Readonly<z.infer<typeof record>>;

export interface DpuRestart {
  readonly kind: 'reboot' | 'open-vswitch';
  /** RFC 3339. */
  readonly at: string;
}

/** Undefined if there is none, as of an older agent, or it cannot be read. */
export function parseDpuRun(text: string | undefined): DpuRunRecord | undefined {
  if (text === undefined || text.length > MAX_RECORD_CHARACTERS) return undefined;
  return record.safeParse(parseJson(text)).data;
}

/** Undefined unless a restart was recorded. */
export function restartOf(recorded: DpuRunRecord | undefined): DpuRestart | undefined {
  const { restart, bootId } = recorded ?? {};
  return restart && { kind: restart.previous.bootId === bootId ? 'open-vswitch' : 'reboot', at: restart.at };
}

/**
 * The record after a look at what runs now: the first run is no restart, and neither is another way of looking.
 * @param at when this run began, RFC 3339 @returns undefined if the record is right
 */
export function nextRecord(recorded: DpuRunRecord | undefined, current: DpuRun, at: string): DpuRunRecord | undefined {
  if (recorded === undefined) return current;
  if (isSameRun(recorded, current)) return undefined;
  const { restart: _, ...previous } = recorded;
  return { ...current, restart: { previous, at } };
}

function isSameRun(a: DpuRun, b: DpuRun): boolean {
  if (a.bootId !== b.bootId || a.pid !== b.pid) return false;
  if (a.start !== undefined && b.start !== undefined) return a.start === b.start;
  return a.pidfile === undefined || b.pidfile === undefined || a.pidfile === b.pidfile;
}

export const restartText = ({ kind, at }: DpuRestart): string =>
  `${kind === 'reboot' ? 'its DPU’s reboot' : 'the restart of its DPU’s Open vSwitch'} at ${at}`;

/** A pod, as far as it tells when its network was made. */
export interface NetworkedPod {
  readonly metadata: {
    readonly creationTimestamp?: string | undefined;
    readonly deletionTimestamp?: string | undefined;
    readonly annotations?: Readonly<Record<string, string>> | undefined;
    readonly managedFields?: readonly ManagedFields[] | undefined;
  };
  readonly spec: { readonly hostNetwork?: boolean | undefined };
  readonly status?: Optional<{
    readonly phase?: string | undefined;
    readonly conditions?: Optional<readonly ConditionShape[]>;
  }>;
}

/**
 * When a running pod's network was made for the last time, in milliseconds since 1970: with its sandbox, or when
 * OVN-Kubernetes wrote its connection again. The kubelet's condition is newer than the pod if the pod waited for its DPU.
 * @returns undefined for a pod on the host's network, without a sandbox, or that ends
 */
export function networkMadeAt({ metadata, spec, status }: NetworkedPod): number | undefined {
  if (spec.hostNetwork === true || metadata.deletionTimestamp !== undefined) return undefined;
  if (!['Pending', 'Running'].includes(status?.phase ?? '')) return undefined;
  const sandbox = status?.conditions?.find(({ type }) => type === 'PodReadyToStartContainers');
  if (sandbox === undefined ? status?.phase === 'Pending' : sandbox.status !== 'True') return undefined;
  const connections = dpuConnections(metadata.annotations ?? {});
  const isConnected = connections.length > 0 && connections.every(({ state }) => state === 'Ready');
  const times = [
    metadata.creationTimestamp,
    sandbox?.lastTransitionTime,
    isConnected ? connectionsWrittenAt(metadata.managedFields) : undefined,
  ];
  return Math.max(...times.map((time) => Date.parse(time ?? '') || 0));
}

/** @param madeAt of `networkMadeAt` */
export function isNetworkLost(madeAt: number | undefined, { at }: Pick<DpuRestart, 'at'>): boolean {
  return madeAt !== undefined && madeAt < Date.parse(at);
}
