import { isNotFound, type KubeClient } from '../../kube/client.ts';
import type { LeaseTiming } from '../../model/lease/timing.ts';
import type { Logger } from '../../runtime/log.ts';
import { sleep } from '../../runtime/time.ts';
import { createRenewals, type LeaseName, patchLease, readLease } from '../kube-objects/lease.ts';
import type { AgentMetrics } from '../telemetry/metrics.ts';
import type { Probe } from './probe.ts';

export interface DpuDeps {
  readonly client: KubeClient;
  readonly lease: LeaseName;
  readonly timing: LeaseTiming;
  readonly probe: Probe;
  readonly log: Logger;
  readonly metrics: AgentMetrics;
  /** Milliseconds since the epoch. */
  readonly wallClock: () => number;
}

/**
 * The DPU's side of its Lease: renews it every interval while the probe finds the DPU healthy. It never creates the
 * Lease: without the host's side the Lease would outlive its node.
 */
export function createDpuLease({ client, lease, timing, probe, log, metrics, wallClock }: DpuDeps) {
  const renewals = createRenewals(wallClock);
  let resumed = false;

  /** @throws KubeError */
  const renew = async (signal: AbortSignal): Promise<void> => {
    if (!resumed) {
      renewals.seen((await readLease(client, lease, signal)).spec?.renewTime);
      resumed = true;
    }
    await patchLease(client, lease, { spec: { renewTime: renewals.next() } }, signal);
  };

  /** One round. @returns undefined if renewed, else the reason why not */
  const round = async (signal: AbortSignal): Promise<string | undefined> => {
    const unwell = await probe(signal);
    if (unwell !== undefined) {
      metrics.dpuRenewals.inc({ outcome: 'withheld' });
      return `not renewed because the DPU is not healthy: ${unwell}`;
    }
    try {
      await renew(signal);
      metrics.dpuRenewals.inc({ outcome: 'renewed' });
      return undefined;
    } catch (error) {
      metrics.dpuRenewals.inc({ outcome: 'failed' });
      if (isNotFound(error)) return 'the lease does not exist yet; the agent on the host creates it (--mode dpu-host)';
      return (error as Error).message;
    }
  };

  return {
    async run(signal: AbortSignal): Promise<void> {
      let last: string | undefined = 'never renewed';
      while (!signal.aborted) {
        const problem = await round(signal);
        if (!signal.aborted && problem !== last) {
          if (problem === undefined)
            log.info({ lease: lease.name, interval: timing.renewInterval }, 'renewing the DPU lease');
          else log.warn({ lease: lease.name, problem }, 'renewing the DPU lease failed');
          last = problem;
        }
        await sleep(timing.renewInterval, signal).catch(() => undefined);
      }
    },
  };
}
