import type { Finding } from '../errors.ts';
import { asksForAlignment, decideOrdinary, wantsWholeCores } from '../launcher/annotation.ts';
import { hasExclusiveCpus, type IntegralContainer, integralContainers } from '../launcher/containers.ts';
import { launcherCpus } from '../launcher/cpus.ts';
import { decideAlignment, type NoPadding } from '../launcher/decide.ts';
import { recognizeLauncher } from '../launcher/recognize.ts';
import { askedMultiples } from '../launcher/smt-affinity.ts';
import { PLACED_RESOURCE } from '../names.ts';
import { integralCpus } from '../quantity.ts';
import { COMPUTE, type PodShape, type VmiShape } from '../shapes.ts';
import type { ClusterFacts, LauncherFacts, OrdinaryFacts, Place, Settings } from './facts.ts';

/** The CPU changes of a pod: of a launcher, or of an ordinary pod that asks for whole cores. */
export interface PodCpus {
  /** Whether the kubelet gives the pod exclusive CPUs. */
  readonly exclusive: boolean;
  /** Whether Plumbline is responsible for whole cores: it then keeps the pod from nodes that would reject it. */
  readonly answered: boolean;
  readonly threadsPerCore: number | undefined;
  /** The containers with exclusive CPUs, with the CPUs that they get. */
  readonly amounts: readonly Pick<IntegralContainer, 'list' | 'cpus'>[];
  /** The containers that may change; `cpus` is undefined for a container that keeps its CPUs. */
  readonly containers: readonly (Place & { readonly cpus: number | undefined })[];
  /** The container that requests the device resources. */
  readonly bearer: Place | undefined;
  /** Plumbline's resources that this container requests in addition to those of its networks. */
  readonly own: readonly string[];
  /** For the decision annotation: CPUs by container, and the number of CPUs added to those that the VMI needs. */
  readonly stated: Readonly<Record<string, number>>;
  readonly padding: number;
  /** For the decision annotation: why a launcher that asks for whole cores is not padded. */
  readonly unpadded?: string | undefined;
  readonly findings: readonly Finding[];
}

/**
 * The CPUs of a launcher. Only `compute` is padded and requests device resources.
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
      : (integralCpus(pod.spec.containers[compute]?.resources?.limits?.['cpu'] ?? '0') ?? 0);
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
    findings: alignment.findings,
  };
}

/**
 * The CPUs of an ordinary pod that asks for whole cores: every container with exclusive CPUs is rounded up. The first
 * of them that keeps running requests the device resources, including the one that makes the scheduler call the
 * extender. Init containers do not qualify, because they have ended when the networks are in use. Only the decision
 * annotation records the change, since there is no VMI.
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
    findings,
  };
}

/**
 * Reasons for not padding a launcher that asks for whole cores. The other reasons apply to other pods, or to launchers
 * that have whole cores.
 */
const UNPADDED: Readonly<Partial<Record<NoPadding, string>>> = {
  'gate-off': 'the webhook runs with --full-pcpus-only false',
  'not-dedicated': 'the VM has no dedicated CPUs (dedicatedCpuPlacement)',
  'not-isolated': 'the VM has no isolated emulator thread (isolateEmulatorThread)',
  'pod-level-resources': 'the pod has pod-level resources (spec.resources)',
  'no-exclusive-cpus': 'the container compute does not have the same whole number of CPUs as request and limit',
};

/**
 * CPUs that a pod has at least while it runs: those of its containers, without init containers. Sidecars do not count.
 */
export function lastingCpus({ amounts }: Pick<PodCpus, 'amounts'>): number {
  return amounts.reduce((sum, { list, cpus }) => (list === 'containers' ? sum + cpus : sum), 0);
}

/** Whether a place is the given one; false for an absent place. */
export function isAt(place: Place | undefined, { list, index }: Place): boolean {
  return place?.list === list && place.index === index;
}

/**
 * Why a pod cannot be resized in place; undefined if it can. The kubelet's static policy cannot resize a pod with
 * exclusive CPUs, and the new amount would not be rounded to whole cores. Such a pod must be replaced.
 * @throws ParseError if an amount is malformed
 */
export function resizeRefusal(
  before: PodShape,
  after: PodShape,
  settings: Pick<Settings, 'gate' | 'policy'>,
): string | undefined {
  if (!isAligned(before, settings) || amounts(before) === amounts(after)) return undefined;
  const what =
    recognizeLauncher(before).kind === 'launcher'
      ? 'change the VM and restart or migrate it'
      : 'delete and create it again';
  return `this pod has whole cores, which cannot be resized in place: ${what}`;
}

function isAligned(pod: PodShape, { gate, policy }: Pick<Settings, 'gate' | 'policy'>): boolean {
  const launcher =
    recognizeLauncher(pod).kind === 'launcher' && gate && (policy !== 'annotated' || wantsWholeCores(pod.metadata));
  return (launcher || asksForAlignment(pod.metadata)) && hasExclusiveCpus(pod);
}

function amounts({ spec }: PodShape): string {
  const containers = [...spec.containers, ...(spec.initContainers ?? [])];
  return JSON.stringify(containers.map(({ name, resources }) => [name, resources?.requests, resources?.limits]));
}
