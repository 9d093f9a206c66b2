import type { Finding } from '../finding.ts';
import { wholeCpus } from '../launcher/amounts.ts';
import { wantsWholeCores } from '../launcher/annotation.ts';
import { hasExclusiveCpus, type IntegralContainer, integralContainers } from '../launcher/containers.ts';
import { launcherCpus } from '../launcher/cpus.ts';
import { type Alignment, decideAlignment, type NoPadding } from '../launcher/decide.ts';
import { askedMultiples } from '../launcher/node-kind.ts';
import { decideOrdinary } from '../launcher/ordinary.ts';
import { COMPUTE, type VmiShape } from '../launcher/shapes.ts';
import { PLACED_RESOURCE } from '../names.ts';
import type { Done, Place } from './decision.ts';
import type { ClusterFacts, LauncherFacts, OrdinaryFacts } from './facts.ts';

/** What happens to the CPUs of a pod, whether it is a launcher or asked for whole cores by itself. */
export interface PodCpus {
  /** Whether the kubelet gives it CPUs of its own. */
  readonly exclusive: boolean;
  /** Whether Plumbline answers for whole cores: then it keeps the pod from nodes that would reject them. */
  readonly answered: boolean;
  readonly threadsPerCore: number | undefined;
  /** The containers with CPUs of their own, by what they end up with. */
  readonly amounts: readonly Pick<IntegralContainer, 'list' | 'cpus'>[];
  /** The containers that may change; `cpus` is undefined for one that keeps its CPUs. */
  readonly containers: readonly (Place & { readonly cpus: number | undefined })[];
  /** The container that takes the devices. */
  readonly bearer: Place | undefined;
  /** Plumbline's resources that the bearer takes besides those of its networks. */
  readonly own: readonly string[];
  /** For the decision annotation: CPUs by container, and how many of them were added to what the VMI needs. */
  readonly stated: Readonly<Record<string, number>>;
  readonly padding: number;
  /** For the same: why a launcher that asks for whole cores is left as it is. */
  readonly unpadded?: string | undefined;
  readonly done: readonly Done[];
  readonly findings: readonly Finding[];
}

/**
 * The CPUs of a launcher: `compute` alone is padded, and has the devices.
 * @throws ParseError if an amount is malformed
 */
export function cpusOfLauncher(
  { pod, compute, settings }: Pick<LauncherFacts, 'pod' | 'compute' | 'settings'>,
  vmi: VmiShape,
  { candidates }: Pick<ClusterFacts, 'candidates'>,
): PodCpus {
  const alignment = decideAlignment({ pod, vmi, candidates: askedMultiples(candidates), ...settings });
  const cpus =
    alignment.kind === 'pad'
      ? alignment.to
      : (wholeCpus(pod.spec.containers[compute]?.resources?.limits?.['cpu'] ?? '0') ?? 0);
  const padding = cpus - launcherCpus(vmi).total;
  const answered = alignment.kind === 'pad' || alignment.why === 'aligned';
  const bearer: Place = { list: 'containers', index: compute };
  return {
    exclusive: hasExclusiveCpus(pod),
    answered,
    threadsPerCore: alignment.threadsPerCore,
    amounts: integralContainers(pod).map((one) => (isAt(bearer, one) ? { ...one, cpus } : one)),
    containers: [{ ...bearer, cpus: alignment.kind === 'pad' ? cpus : undefined }],
    bearer,
    own: [],
    stated: answered ? { [COMPUTE]: cpus } : {},
    padding,
    unpadded: alignment.kind === 'none' && wantsWholeCores(pod.metadata) ? UNPADDED[alignment.why] : undefined,
    done: paddingDone(alignment),
    findings: alignment.findings,
  };
}

/**
 * The CPUs of an ordinary pod that asks for whole cores: every container with CPUs of its own is rounded up. The first
 * of them that runs on has the devices, and among them the one that has the extender look at the pod: an init container
 * is gone when the networks are in use. Only its annotation records the change, since it has no VMI.
 * @throws ParseError if an amount is malformed
 */
export function cpusOfOrdinary({ pod, cluster, settings }: OrdinaryFacts): PodCpus {
  const multiples = askedMultiples(cluster.candidates);
  const { containers, threadsPerCore, findings } = decideOrdinary(pod, multiples, settings.policy);
  const exclusive = containers.length > 0 && !findings.some(({ severity }) => severity === 'error');
  return {
    exclusive,
    answered: exclusive,
    threadsPerCore,
    amounts: containers.map(({ list, to }) => ({ list, cpus: to })),
    containers: exclusive
      ? containers.map(({ list, index, cpus, to }) => ({ list, index, cpus: to === cpus ? undefined : to }))
      : [],
    bearer: containers.find(({ list }) => list === 'containers') ?? containers[0],
    own: [PLACED_RESOURCE],
    stated: Object.fromEntries(exclusive ? containers.map(({ name, to }) => [name, to]) : []),
    padding: 0,
    done: [],
    findings,
  };
}

/** Of a launcher that has asked; the other reasons are not about one, or leave it with whole cores. */
const UNPADDED: Readonly<Partial<Record<NoPadding, string>>> = {
  'gate-off': 'the webhook runs with --full-pcpus-only false',
  'not-dedicated': 'the VM has no dedicated CPUs (dedicatedCpuPlacement)',
  'not-isolated': 'the VM has no emulator thread of its own (isolateEmulatorThread)',
  'pod-level-resources': 'the pod has resources of its own in addition to those of its containers',
  'no-exclusive-cpus': 'compute does not ask for a whole number of CPUs, request and limit alike',
};

/** The CPUs that a pod has while it runs, at the least: sidecars, which are init containers, are left out. */
export function lastingCpus({ amounts }: Pick<PodCpus, 'amounts'>): number {
  return amounts.reduce((sum, { list, cpus }) => (list === 'containers' ? sum + cpus : sum), 0);
}

/** Whether a place is the given one; false for an absent place. */
export function isAt(place: Place | undefined, { list, index }: Place): boolean {
  return place?.list === list && place.index === index;
}

function paddingDone(alignment: Alignment): readonly Done[] {
  if (alignment.kind !== 'pad') return [];
  const { from, to, threadsPerCore } = alignment;
  const message = `Padded the launcher's CPUs from ${from} to ${to}: whole cores of ${threadsPerCore} threads. Quotas and limit ranges of the namespace count ${to}`;
  return [{ reason: PADDED, message }];
}

/** True of a launcher that was not created as well: its padding counts against a quota. */
export const PADDED = 'PaddedToWholeCores';
