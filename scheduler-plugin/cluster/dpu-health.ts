import type { KubeClient } from '../../kube/client.ts';
import { isNotFound } from '../../kube/errors.ts';
import { lease as leaseSchema } from '../../kube/resources.ts';
import {
  isReady,
  judgeLease,
  type LeaseObservation,
  type LeaseReading,
  type LeaseState,
  NOTHING_OBSERVED,
  observeLease,
} from '../../model/lease/observer.ts';
import { DPU_LEASE_PREFIX } from '../../model/names.ts';
import type { Logger } from '../../runtime/log.ts';

/** What is read of a DPU's lease. */
export interface LeaseView {
  readonly node: string;
  readonly renewTime: string | undefined;
  /** Seconds. */
  readonly duration: number | undefined;
}

export interface DpuVerdict {
  readonly ready: boolean;
  readonly state: LeaseState;
  /** Seconds since the last renewal that was seen. */
  readonly age: number | undefined;
}

/**
 * Whether the DPU of each node is alive, by watching its lease change. The watch brings renewals; silence on a watch
 * proves nothing, so when a lease is due to have been renewed it is read once from the API server before the DPU
 * counts as dead, and again every few seconds while it is not alive.
 */
export interface DpuHealth {
  changed(node: string, view: LeaseView | undefined): void;
  verdict(node: string): DpuVerdict;
  stop(): void;
}

export interface DpuHealthOptions {
  readonly client: KubeClient;
  readonly namespace: string;
  /** Whether a DPU counts as alive while the API server cannot be asked. */
  readonly whenUnknown: 'ready' | 'not-ready';
  /** Renewals in a row before a DPU counts as alive: 2 where somebody else's host side writes the lease as well. */
  readonly proof: number;
  /** Called with a DPU's first verdict, and whenever its state changes. */
  readonly onChange: (node: string, verdict: DpuVerdict) => void;
  readonly log: Logger;
  /** Monotonic seconds. */
  readonly now: () => number;
}

/** Where a lease does not say how long a renewal counts. */
const DEFAULT_DURATION = 40;

interface Watched {
  observation: LeaseObservation;
  duration: number;
  ready: boolean;
  /** As it was told last. */
  state: LeaseState | undefined;
  timer: NodeJS.Timeout | undefined;
}

export function createDpuHealth({
  client,
  namespace,
  whenUnknown,
  proof,
  onChange,
  log,
  now,
}: DpuHealthOptions): DpuHealth {
  const watched = new Map<string, Watched>();

  const verdictOf = ({ observation, duration }: Watched): DpuVerdict => {
    const { state, age } = judgeLease(observation, now(), { duration, proof });
    return { state, age, ready: isReady(state, whenUnknown) };
  };

  const settle = (node: string, dpu: Watched): void => {
    const verdict = verdictOf(dpu);
    if (verdict.ready !== dpu.ready) {
      dpu.ready = verdict.ready;
      log.info({ node, ...verdict }, verdict.ready ? 'the DPU is alive' : 'the DPU is not alive');
    }
    if (verdict.state !== dpu.state) {
      dpu.state = verdict.state;
      onChange(node, verdict);
    }
    clearTimeout(dpu.timer);
    const { until } = judgeLease(dpu.observation, now(), { duration: dpu.duration, proof });
    const wait = until === undefined ? Math.max(1, dpu.duration / 4) : until - now() + 0.01;
    dpu.timer = setTimeout(() => void look(node, dpu), wait * 1000);
    dpu.timer.unref();
  };

  const look = async (node: string, dpu: Watched): Promise<void> => {
    const reading = await read(node);
    if (watched.get(node) !== dpu) return;
    dpu.observation = observeLease(dpu.observation, reading, now(), { duration: dpu.duration, proof });
    settle(node, dpu);
  };

  const read = async (node: string): Promise<LeaseReading> => {
    const path = `/apis/coordination.k8s.io/v1/namespaces/${namespace}/leases/${DPU_LEASE_PREFIX}${node}`;
    try {
      const { spec } = leaseSchema.parse(await client.get(path, { timeout: 5 }));
      return { kind: 'read', renewTime: spec?.renewTime };
    } catch (err) {
      return isNotFound(err) ? { kind: 'missing' } : { kind: 'failed' };
    }
  };

  return {
    changed(node, view) {
      const dpu = watched.get(node) ?? {
        observation: NOTHING_OBSERVED,
        duration: DEFAULT_DURATION,
        ready: false,
        state: undefined,
        timer: undefined,
      };
      watched.set(node, dpu);
      dpu.duration = view?.duration ?? dpu.duration;
      const reading: LeaseReading =
        view === undefined ? { kind: 'missing' } : { kind: 'read', renewTime: view.renewTime };
      dpu.observation = observeLease(dpu.observation, reading, now(), { duration: dpu.duration, proof });
      settle(node, dpu);
    },
    verdict(node) {
      const dpu = watched.get(node);
      // Without a lease the feature is off for this node, or its agent has not come up: nothing says that the DPU is dead.
      if (dpu === undefined) return { ready: whenUnknown === 'ready', state: 'unknown', age: undefined };
      return verdictOf(dpu);
    },
    stop() {
      for (const { timer } of watched.values()) clearTimeout(timer);
      watched.clear();
    },
  };
}
