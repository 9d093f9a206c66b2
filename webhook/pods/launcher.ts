import type { Pod, VirtualMachineInstance } from '../../kube/resources.ts';
import { wholeCpus } from '../../model/launcher/amounts.ts';
import type { LauncherFinding } from '../../model/launcher/annotation.ts';
import { integralContainers, qosObstacles } from '../../model/launcher/containers.ts';
import { launcherCpus } from '../../model/launcher/cpus.ts';
import { type Alignment, decideAlignment } from '../../model/launcher/decide.ts';
import { maskRefusals, maskWithOwnCpus } from '../../model/launcher/mask-check.ts';
import { askedMultiples } from '../../model/launcher/node-kind.ts';
import type { NodeRequirement } from '../../model/launcher/node-selection.ts';
import type { AlignmentPolicy } from '../../model/launcher/policy.ts';
import { recognizeLauncher } from '../../model/launcher/recognize.ts';
import { COMPUTE } from '../../model/launcher/shapes.ts';
import { beforeSmtAffinity, smtAffinity } from '../../model/launcher/smt-affinity.ts';
import { DECISION_ANNOTATION, PLACEMENT_ANNOTATION } from '../../model/names.ts';
import type { ClusterView } from '../cluster/cluster-view.ts';
import { decisionText, inWords, type PodDecision, placementText, type Refusal, sorted, type Told } from './decision.ts';
import type { FetchNad } from './nad-fetch.ts';
import { type OwnerNetworks, ownerNetworks } from './networks.ts';
import { type OversizedPolicy, reachOf } from './oversized.ts';
import type { AdmittedPod } from './read-pod.ts';
import { reservedRequest } from './reserved.ts';

export interface DecideOptions {
  readonly view: ClusterView;
  readonly fetchNad: FetchNad;
  /** The feature gate FullPCPUsOnly. */
  readonly gate: boolean;
  readonly policy: AlignmentPolicy;
  readonly oversized: OversizedPolicy;
}

export interface Launcher {
  readonly pod: AdmittedPod;
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
  const free = beforeSmtAffinity(pod.spec);
  const candidates = view.candidates(free);
  const alignment = decideAlignment({ pod, vmi, candidates: askedMultiples(candidates), gate, policy });
  const exclusive = qosObstacles(pod).length === 0 && integralContainers(pod).length > 0;
  const networks = await ownerNetworks({ namespace, pod, vmi, exclusive }, view, fetchNad);
  const cpus = alignment.kind === 'pad' ? alignment.to : currentCpus(pod, compute);
  const nodes = isAnsweredFor(alignment)
    ? smtAffinity({ cpus: exclusiveAmounts(pod, compute, cpus), candidates, reported: view.nodeKinds() })
    : undefined;
  const spansCells = vmi.spec.domain.cpu?.numa?.guestMappingPassthrough !== undefined;
  const reach = reachOf(networks.held, { cpus: lastingAmount(pod, compute, cpus), spansCells }, free, options);
  const { notes, others } = sorted(alignment.warnings);
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
      annotations: annotationsFor(launcher, { alignment, cpus, networks, nodes }),
      nodes,
    },
    done: [
      ...paddingDone(alignment),
      ...devicesDone(pod, compute, networks.resources),
      ...(free === pod.spec ? nodesDone(nodes) : []),
    ],
    notes,
    warnings: [
      ...others.filter((finding) => !isRefusal(finding)).map(({ message }) => message),
      ...networks.warnings,
      ...reach.warnings,
    ],
    refusals: [
      ...(reach.refusal === undefined ? [] : [{ code: 422, message: reach.refusal }]),
      ...others.filter(isRefusal).map(({ message }): Refusal => ({ code: 422, message })),
      ...foreignRequests(pod, compute, networks.mayHave),
      ...againstMask(launcher, exclusive),
    ],
  };
}

/**
 * Decides about a launcher for which nothing follows from its VMI, whatever that says: it is admitted as it is, without
 * what only Plumbline may put there.
 */
export function leaveLauncher(pod: Pod, compute: number): PodDecision {
  return {
    change: {
      containers: [],
      annotations: { [DECISION_ANNOTATION]: undefined, [PLACEMENT_ANNOTATION]: undefined },
      nodes: undefined,
    },
    done: [],
    notes: [],
    warnings: [],
    refusals: foreignRequests(pod, compute, []),
  };
}

interface Outcome {
  readonly alignment: Alignment;
  readonly cpus: number;
  readonly networks: OwnerNetworks;
  readonly nodes: readonly NodeRequirement[] | undefined;
}

function annotationsFor({ vmi }: Launcher, { alignment, cpus, networks, nodes }: Outcome) {
  const padding = cpus - launcherCpus(vmi).total;
  const { numa } = vmi.spec.domain.cpu ?? {};
  return {
    [DECISION_ANNOTATION]: decisionText({
      cpus: isAnsweredFor(alignment) && padding > 0 ? { [COMPUTE]: cpus } : {},
      threadsPerCore: alignment.threadsPerCore,
      padding,
      networks: networks.held,
      resources: networks.resources,
      nodes,
    }),
    [PLACEMENT_ANNOTATION]: placementText(
      {
        preferred: networks.preferred,
        spansCells: numa?.guestMappingPassthrough !== undefined,
        interfaces: networks.interfaces,
      },
      networks.resources,
    ),
  };
}

function paddingDone(alignment: Alignment): readonly Told[] {
  if (alignment.kind !== 'pad') return [];
  const { from, to, threadsPerCore } = alignment;
  const message = `Padded the launcher's CPUs from ${from} to ${to}: whole cores of ${threadsPerCore} threads. Quotas and limit ranges of the namespace count ${to}`;
  return [{ reason: 'PaddedToWholeCores', message }];
}

function devicesDone(pod: Pod, compute: number, resources: readonly string[]): readonly Told[] {
  const has = pod.spec.containers[compute]?.resources?.limits ?? {};
  const added = resources.filter((resource) => has[resource] === undefined);
  if (added.length === 0) return [];
  const message = `The launcher asks for CPUs on the NUMA nodes of its networks: ${added.join(', ')}`;
  return [{ reason: 'HeldToItsNetworks', message }];
}

function nodesDone(nodes: readonly NodeRequirement[] | undefined): readonly Told[] {
  if (nodes === undefined) return [];
  const message = `The launcher keeps away from nodes that would reject its CPUs: ${nodes.map(inWords).join(', or ')}`;
  return [{ reason: 'HeldToItsCores', message }];
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

/** At the least: sidecars, which are init containers, are left out. */
function lastingAmount(pod: Pod, compute: number, cpus: number): number {
  const apps = integralContainers(pod).filter(({ list }) => list === 'containers');
  return apps.reduce((sum, one) => sum + (one.index === compute ? cpus : one.cpus), 0);
}

function foreignRequests(pod: Pod, compute: number, mayHave: readonly string[]): readonly Refusal[] {
  const found = reservedRequest(pod, { list: 'containers', index: compute }, mayHave);
  return found === undefined ? [] : [{ code: 403, message: found }];
}

/**
 * The mask is the pod's, which the node's agent goes by; the vCPUs are the VMI's. Of a VM that migrates KubeVirt may have
 * plugged vCPUs in, which changes the VMI without its mask and takes a migration: their number is not asked then.
 */
function againstMask({ pod, vmi }: Launcher, exclusive: boolean): readonly Refusal[] {
  const { metadata } = pod;
  const recognized = recognizeLauncher(pod);
  const mayBePlugged = recognized.kind === 'launcher' && recognized.purpose === 'migration-target';
  const found = maskRefusals({ metadata, spec: vmi.spec, vcpusUnknown: mayBePlugged });
  const refusals = found.length === 0 && exclusive ? maskWithOwnCpus(metadata) : found;
  return refusals.map((message) => ({ code: 422, message }));
}
