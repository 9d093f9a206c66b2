import type { Cluster } from './cluster.ts';
import type { DpuHealth } from './dpu-health.ts';
import type { ExtenderMetrics } from './metrics.ts';
import { podNeedsOf } from './pod-needs.ts';
import type { Recheck } from './recheck.ts';
import { judgeNode, type NodeVerdict, type UnpredictablePolicy } from './verdict.ts';
import type { ExtenderArgs, FilterVerdict, HostPriority } from './wire.ts';

/** The caches have not seen the whole cluster yet, so no verdict can be given. */
export class NotSynced extends Error {}

export interface Extender {
  /** @throws NotSynced, ParseError */
  filter(args: ExtenderArgs): FilterVerdict;
  /** Called for the nodes that passed. @throws NotSynced, ParseError */
  prioritize(args: ExtenderArgs): readonly HostPriority[];
}

export interface ExtenderOptions {
  readonly cluster: Cluster;
  readonly dpuHealth: DpuHealth;
  readonly recheck: Recheck;
  readonly unpredictable: UnpredictablePolicy;
  readonly metrics: ExtenderMetrics;
}

export function createExtender(options: ExtenderOptions): Extender {
  const { cluster, dpuHealth, recheck, unpredictable, metrics } = options;

  const judge = ({ pod, nodeNames }: ExtenderArgs): Map<string, NodeVerdict> => {
    if (cluster.missing !== undefined) throw new NotSynced(cluster.missing);
    const needs = podNeedsOf(pod);
    return new Map(
      nodeNames.map((name) => {
        const dpu = cluster.isDpuHost(name) ? dpuHealth.verdict(name) : undefined;
        const bound = cluster.boundPods(name).map((one) => one.needs);
        return [name, judgeNode(needs, { host: cluster.host(name), bound, dpu }, unpredictable)];
      }),
    );
  };

  return {
    filter(args) {
      const fits: string[] = [];
      const failed: Record<string, string> = {};
      const unresolvable: Record<string, string> = {};
      for (const [name, verdict] of judge(args)) {
        if (verdict.fits) {
          fits.push(name);
          continue;
        }
        metrics.refusals.inc({ reason: verdict.kind });
        (verdict.preemptible ? failed : unresolvable)[name] = verdict.text;
      }
      const uid = args.pod.metadata.uid ?? '';
      if (fits.length === 0) recheck.refused(uid);
      else recheck.settled(uid);
      return { fits, failed, unresolvable };
    },
    prioritize: (args) =>
      [...judge(args)].map(([node, verdict]) => ({ node, score: verdict.fits ? verdict.score : 0 })),
  };
}
