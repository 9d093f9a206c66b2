import { isNotFound, type KubeClient } from '../../kube/client.ts';
import { lease as leaseSchema } from '../../kube/resources.ts';
import type { AgentLease } from '../../model/lease/agent-health.ts';
import {
  isReady,
  judgeLease,
  type LeaseObservation,
  type LeaseReading,
  type LeaseState,
  type LeaseVerdict,
  NOTHING_OBSERVED,
  observeLease,
} from '../../model/lease/observer.ts';
import { isReleased } from '../../model/lease/repair.ts';
import { DEFAULT_LEASE_SECONDS, leaseSeconds } from '../../model/lease/timing.ts';
import { DPU_LEASE_PREFIX } from '../../model/names.ts';
import type { ExtenderLogger } from '../telemetry/log-messages.ts';

export interface LeaseView extends AgentLease {
  /** Its host runs with the health check off: missing renewals mean nothing. */
  readonly released?: boolean;
}

export interface DpuVerdict extends Pick<LeaseVerdict, 'state' | 'age'> {
  readonly ready: boolean;
}

/**
 * Determines whether the DPU of each node is alive by watching its Lease change. The watch delivers renewals, but a
 * silent watch proves nothing. So when a renewal is overdue, the Lease is read once from the API server before the DPU
 * counts as dead, and again every few seconds while it is not alive. Only Leases of DPU hosts are read. Nothing is kept
 * of a deleted Lease whose node is not a DPU host.
 *
 * A replica that has just started has observed no renewal. For the duration of a Lease it uses the condition that the
 * previous replica wrote on the node: within that time the Lease is renewed, or the DPU is dead.
 */
export type DpuHealth = ReturnType<typeof createDpuHealth>;

export interface DpuHealthOptions {
  readonly client: KubeClient;
  readonly namespace: string;
  /** Whether a DPU counts as alive while the API server does not answer. */
  readonly whenUnknown: 'ready' | 'not-ready';
  /** Consecutive renewals before a DPU counts as alive, given the seconds that one is valid. */
  readonly proof: (duration: number) => number;
  readonly isDpuHost: (node: string) => boolean;
  /** The uid of the Node object; undefined if there is none. */
  readonly uidOf: (node: string) => string | undefined;
  /** The status of the node's condition plumbline.dev/DPUReady. */
  readonly recorded: (node: string) => string | undefined;
  /** Called with a DPU's first verdict, and whenever its state changes. */
  readonly onChange: (node: string, verdict: DpuVerdict) => void;
  /** Called when nothing is kept of the node's DPU any longer. */
  readonly onForgotten: (node: string) => void;
  readonly log: ExtenderLogger;
  /** Monotonic seconds. */
  readonly now: () => number;
}

interface Watched {
  observation: LeaseObservation;
  /** Seconds that the last renewal is valid. */
  duration: number;
  renewTime: string | undefined;
  ready: boolean;
  /** As last reported. */
  state: LeaseState | undefined;
  timer: NodeJS.Timeout | undefined;
  /** The uid of the last Node of that name. */
  uid: string | undefined;
  /** Whether the API server last reported that there is no such Lease. */
  missing: boolean;
}

/** Seconds after which a read of a Lease counts as failed. */
const TIMEOUT = 5;

export function createDpuHealth(options: DpuHealthOptions) {
  const { client, namespace, whenUnknown, isDpuHost, recorded, onChange, onForgotten, log, now } = options;
  const watched = new Map<string, Watched>();
  const released = new Set<string>();

  const termsOf = ({ duration }: Watched) => ({ duration, proof: options.proof(duration) });

  const verdictOf = (node: string, dpu: Watched): DpuVerdict => {
    const { state, age, until } = judgeLease(dpu.observation, now(), termsOf(dpu));
    const isVouchedFor = state === 'unproven' && until !== undefined && recorded(node) === 'True';
    return { state, age, ready: isReady(state, whenUnknown) || isVouchedFor };
  };

  const settle = (node: string, dpu: Watched): void => {
    const verdict = verdictOf(node, dpu);
    const isNews = verdict.state !== dpu.state || verdict.ready !== dpu.ready;
    if (verdict.ready !== dpu.ready) {
      const { state, ready, age } = verdict;
      const fields = { node, state, ready, ...(age !== undefined && { renewedSecondsAgo: Math.round(age) }) };
      if (ready) log.info(fields, 'DPU is alive');
      else log.warn(fields, 'DPU is not alive');
    }
    dpu.ready = verdict.ready;
    dpu.state = verdict.state;
    if (isNews) onChange(node, verdict);
    clearTimeout(dpu.timer);
    if (!isDpuHost(node)) return;
    const { until } = judgeLease(dpu.observation, now(), termsOf(dpu));
    const wait = until === undefined ? Math.max(1, dpu.duration / 4) : until - now() + 0.01;
    dpu.timer = setTimeout(() => void look(node, dpu), wait * 1000).unref();
  };

  const look = async (node: string, dpu: Watched): Promise<void> => {
    const reading = await read(node);
    if (watched.get(node) !== dpu) return;
    if (reading.kind === 'released') release(node);
    else take(node, dpu, reading);
  };

  const release = (node: string): void => {
    if (!released.has(node)) log.info({ node }, 'DPU health check off');
    released.add(node);
    forget(node);
  };

  const take = (node: string, dpu: Watched, reading: LeaseReading): void => {
    dpu.observation = observeLease(dpu.observation, reading, now(), termsOf(dpu));
    dpu.missing = reading.kind === 'failed' ? dpu.missing : reading.kind === 'missing';
    if (dpu.missing && !isDpuHost(node)) forget(node);
    else settle(node, dpu);
  };

  /**
   * A Node that was created again under its name may be another machine: earlier observations prove nothing about its
   * DPU.
   */
  const meet = (node: string, dpu: Watched): void => {
    const uid = options.uidOf(node);
    if (uid === undefined || uid === dpu.uid) return;
    const reading: LeaseReading = { kind: 'read', renewTime: dpu.renewTime };
    if (dpu.uid !== undefined) dpu.observation = observeLease(NOTHING_OBSERVED, reading, now(), termsOf(dpu));
    dpu.uid = uid;
  };

  const forget = (node: string): void => {
    clearTimeout(watched.get(node)?.timer);
    watched.delete(node);
    onForgotten(node);
  };

  const read = async (node: string): Promise<LeaseReading | { readonly kind: 'released' }> => {
    const path = `/apis/coordination.k8s.io/v1/namespaces/${namespace}/leases/${DPU_LEASE_PREFIX}${node}`;
    try {
      const { spec } = leaseSchema.parse(await client.get(path, { timeout: TIMEOUT }));
      return isReleased(spec) ? { kind: 'released' } : { kind: 'read', renewTime: spec?.renewTime };
    } catch (err) {
      return isNotFound(err) ? { kind: 'missing' } : { kind: 'failed' };
    }
  };

  return {
    changed(node: string, view: LeaseView | undefined): void {
      if (view?.released === true) {
        release(node);
        return;
      }
      // Deleting a released Lease changes nothing.
      if (released.delete(node) && view === undefined) return;
      const dpu = watched.get(node) ?? {
        observation: NOTHING_OBSERVED,
        duration: DEFAULT_LEASE_SECONDS,
        renewTime: undefined,
        ready: false,
        state: undefined,
        missing: false,
        timer: undefined,
        uid: options.uidOf(node),
      };
      watched.set(node, dpu);
      if (view !== undefined) dpu.duration = durationAfter(dpu, view);
      take(node, dpu, view === undefined ? { kind: 'missing' } : { kind: 'read', renewTime: view.renewTime });
    },
    /** The node was added or removed, or became or stopped being a DPU host. */
    nodeChanged(node: string): void {
      const dpu = watched.get(node);
      if (dpu === undefined) return;
      meet(node, dpu);
      if (dpu.missing && !isDpuHost(node)) forget(node);
      else settle(node, dpu);
    },
    verdict(node: string): DpuVerdict {
      const dpu = watched.get(node);
      // Without a Lease, the feature is off for this node or its agent has not started: nothing proves that the DPU is
      // dead.
      if (dpu === undefined) {
        return { ready: released.has(node) || whenUnknown === 'ready', state: 'unknown', age: undefined };
      }
      return verdictOf(node, dpu);
    },
    /** Whether the node's host has turned the health check off. */
    released: (node: string) => released.has(node),
    stop(): void {
      for (const { timer } of watched.values()) clearTimeout(timer);
      watched.clear();
    },
  };
}

/**
 * A renewal is valid for the duration that the Lease had at that time. A longer duration written later revives nothing.
 */
function durationAfter(dpu: Watched, { renewTime, duration }: LeaseView): number {
  const said = leaseSeconds(duration);
  const isRenewal = renewTime !== dpu.renewTime || renewTime === undefined;
  dpu.renewTime = renewTime;
  return isRenewal ? said : Math.min(said, dpu.duration);
}
