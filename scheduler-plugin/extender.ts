import type { Pod } from '../kube/resources.ts';
import { podRequestOf } from '../model/kubelet/pod-request.ts';
import type { Cluster } from './cluster.ts';
import type { DpuHealth } from './dpu-health.ts';
import type { ExtenderMetrics } from './metrics.ts';
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
    const request = podRequestOf(pod);
    const dpuMatters = needsDpu(pod);
    return new Map(
      nodeNames.map((name) => {
        const dpu = dpuMatters && cluster.isDpuHost(name) ? dpuHealth.verdict(name) : undefined;
        const facts = { report: cluster.report(name), boundPods: cluster.boundPods(name), dpu };
        return [name, judgeNode(request, facts, unpredictable)];
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
        metrics.refusals.inc({ reason: verdict.refusal });
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

/**
 * Whether a pod's network would be made by the DPU. Pods on the host's own network start without it, and so do
 * DaemonSet pods, which would otherwise hang on a node that is being repaired.
 */
function needsDpu({ metadata, spec }: Pod): boolean {
  const isDaemon = metadata.ownerReferences?.some(
    ({ kind, controller }) => controller === true && kind === 'DaemonSet',
  );
  return spec.hostNetwork !== true && isDaemon !== true;
}
