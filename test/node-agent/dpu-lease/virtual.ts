import { type KubeClient, KubeError } from '../../../kube/client.ts';
import type { LeaseObservation } from '../../../model/lease/observer.ts';
import { createHostDpuHealth, type HostDpuHealth } from '../../../node-agent/dpu-lease/health.ts';

/**
 * A Lease, an API server and a monotonic clock that a test moves by hand; the observer of the host checks when it is
 * due.
 */
export interface VirtualHost {
  /** In monotonic seconds. */
  now: number;
  /** undefined: the Lease does not exist; null: it was never renewed. */
  renewTime: string | null | undefined;
  apiDown: boolean;
  health: HostDpuHealth;
  readonly flips: { readonly at: number; readonly ready: boolean; readonly state: string }[];
  /** Moves the clock and runs each check that is due. */
  pass(seconds: number): Promise<void>;
  /** Starts a new process of the agent, with the observations of the last one if given, as the state file does. */
  restart(before?: LeaseObservation): void;
}

export interface VirtualOptions {
  readonly interval?: number;
  readonly duration?: number;
  readonly whenUnknown?: 'ready' | 'not-ready';
}

export function createVirtualHost(options: VirtualOptions = {}): VirtualHost {
  const { interval = 10, duration = 40, whenUnknown = 'ready' } = options;
  let due = 0;
  const client = {
    get: async () => {
      if (host.apiDown) throw new KubeError(0, 'Unreachable', 'down for the test');
      if (host.renewTime === undefined) throw new KubeError(404, 'NotFound', 'no lease');
      return { metadata: { name: 'ovn-dpu-a' }, spec: { leaseDurationSeconds: duration, renewTime: host.renewTime } };
    },
  } as unknown as KubeClient;
  const host: VirtualHost = {
    now: 1000,
    renewTime: undefined,
    apiDown: false,
    flips: [],
    health: undefined as unknown as HostDpuHealth,
    async pass(seconds) {
      const end = host.now + seconds;
      while (due <= end) {
        host.now = Math.max(host.now, due);
        due = host.now + (await host.health.poll(new AbortController().signal));
      }
      host.now = end;
    },
    restart(before) {
      due = host.now;
      host.health = createHostDpuHealth({
        client,
        lease: { namespace: 'ovn-kubernetes', name: 'ovn-dpu-a' },
        timing: { renewInterval: interval, duration },
        proof: 1,
        whenUnknown,
        before,
        now: () => host.now,
      });
      host.health.subscribe(({ ready, state }, flipped) => {
        if (flipped) host.flips.push({ at: host.now, ready, state });
      });
    },
  };
  host.restart();
  return host;
}
