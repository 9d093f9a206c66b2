import type { Pod, VirtualMachineInstance } from '../../kube/resources.ts';
import { wholeCpus } from '../../model/launcher/amounts.ts';
import type { LauncherFinding } from '../../model/launcher/annotation.ts';
import { integralContainers, qosObstacles } from '../../model/launcher/containers.ts';
import { launcherCpus } from '../../model/launcher/cpus.ts';
import { type Alignment, type AlignmentPolicy, decideAlignment } from '../../model/launcher/decide.ts';
import { threadCounts } from '../../model/launcher/node-kind.ts';
import { COMPUTE } from '../../model/launcher/shapes.ts';
import { beforeSmtAffinity, smtAffinity } from '../../model/launcher/smt-affinity.ts';
import { DECISION_ANNOTATION } from '../../model/names.ts';
import { apartFinding } from '../../model/networks/common-cell.ts';
import type { ClusterView } from '../cluster/cluster-view.ts';
import { decisionText, type PodDecision, type Refusal } from './decision.ts';
import type { FetchNad } from './nad-fetch.ts';
import { ownerNetworks } from './networks.ts';
import { reservedRequest } from './reserved.ts';

export interface DecideOptions {
  readonly view: ClusterView;
  readonly fetchNad: FetchNad;
  /** The feature gate FullPCPUsOnly. */
  readonly gate: boolean;
  readonly policy: AlignmentPolicy;
}

export interface Launcher {
  readonly pod: Pod;
  readonly vmi: VirtualMachineInstance;
  readonly namespace: string;
  /** Index of `compute` in spec.containers. */
  readonly compute: number;
}

/**
 * Decides everything about one launcher: CPUs, devices, nodes, and what refuses it.
 * @throws ParseError if an amount or annotation is malformed
 */
export async function decideLauncher(launcher: Launcher, options: DecideOptions): Promise<PodDecision> {
  const { pod, vmi, namespace, compute } = launcher;
  const { view, fetchNad, gate, policy } = options;
  const candidates = view.candidates(beforeSmtAffinity(pod.spec));
  const alignment = decideAlignment({ pod, vmi, candidates: threadCounts(candidates), gate, policy });
  const exclusive = qosObstacles(pod).length === 0 && integralContainers(pod).length > 0;
  const networks = await ownerNetworks({ namespace, pod, vmi, exclusive }, view, fetchNad);
  const cpus = alignment.kind === 'pad' ? alignment.to : currentCpus(pod, compute);
  const answersFor = isAnsweredFor(alignment);
  const nodes = answersFor
    ? smtAffinity({ cpus: exclusiveAmounts(pod, compute, cpus), candidates, reported: view.nodeKinds() })
    : undefined;
  const padding = cpus - launcherCpus(vmi).total;
  const text = decisionText({
    cpus: answersFor && padding > 0 ? { [COMPUTE]: cpus } : {},
    threadsPerCore: alignment.threadsPerCore,
    padding,
    networks: networks.networks,
    resources: networks.resources,
    nodes,
  });
  const apart = exclusive
    ? apartFinding(
        networks.networks,
        candidates.map((kind) => kind.networks),
      )
    : undefined;
  return {
    change: {
      containers: [
        {
          list: 'containers',
          index: compute,
          cpus: alignment.kind === 'pad' ? alignment.to : undefined,
          resources: networks.resources,
        },
      ],
      annotations: { [DECISION_ANNOTATION]: text },
      nodes,
    },
    padded: alignment.kind === 'pad' ? [{ ...alignment, container: COMPUTE }] : [],
    refusals: [
      ...alignment.warnings.filter(isRefusal).map(({ message }): Refusal => ({ code: 422, message })),
      ...foreignRequests(pod, compute, networks.mayHave),
    ],
    warnings: [
      ...alignment.warnings.filter((finding) => !isRefusal(finding)).map(({ message }) => message),
      ...networks.warnings,
      ...(apart === undefined ? [] : [apart]),
    ],
  };
}

/** What costs a launcher its exclusive CPUs refuses it: it would be promised whole cores and run on shared ones. */
function isRefusal({ code }: LauncherFinding): boolean {
  return code === 'not-guaranteed' || code === 'pod-level-resources';
}

function isAnsweredFor(alignment: Alignment): boolean {
  return alignment.kind === 'pad' || alignment.why === 'aligned';
}

function currentCpus(pod: Pod, compute: number): number {
  return wholeCpus(pod.spec.containers[compute]?.resources?.limits?.['cpu'] ?? '0') ?? 0;
}

function exclusiveAmounts(pod: Pod, compute: number, cpus: number): number[] {
  return integralContainers(pod).map((one) => (one.list === 'containers' && one.index === compute ? cpus : one.cpus));
}

function foreignRequests(pod: Pod, compute: number, mayHave: readonly string[]): readonly Refusal[] {
  const found = reservedRequest(pod, { list: 'containers', index: compute }, mayHave);
  return found === undefined ? [] : [{ code: 403, message: found }];
}
