import { alignedCpus, annotatedThreadsPerCore, isAligned } from '../alignment.ts';
import { countText } from '../amounts.ts';
import type { Finding } from '../errors.ts';
import { type AlignmentPolicy, annotationFindings, CPUS_FROM_CLAIM, wantsWholeCores } from '../launcher/annotation.ts';
import {
  type ContainerPath,
  integralAt,
  isAt,
  mixedFinding,
  obstacleFindings,
  type PodResources,
} from '../launcher/containers.ts';
import { launcherCpus, pinnedCpus } from '../launcher/cpus.ts';
import { askedMultiples } from '../launcher/smt-affinity.ts';
import { COMPUTE, type VmiShape } from '../shapes.ts';
import type { LauncherFacts, OwnerFacts, PodCpus } from './facts.ts';

/** Reasons for not padding a launcher that asks for whole cores; others apply to other pods. */
const UNPADDED: Readonly<Partial<Record<NoPadding, string>>> = {
  'gate-off': 'the webhook runs with --full-pcpus-only false',
  'cpus-from-claim': CPUS_FROM_CLAIM,
  'not-dedicated': 'the VM has no dedicated CPUs (dedicatedCpuPlacement)',
  'not-isolated': 'the VM has no isolated emulator thread (isolateEmulatorThread)',
  'pod-level-resources': 'the pod has pod-level resources (spec.resources)',
  'no-exclusive-cpus': 'the container compute does not have the same whole number of CPUs as request and limit',
};

type Launcher = Pick<LauncherFacts, 'pod' | 'compute' | 'settings'>;
/** From the API server, because tenants can write the pod's own description of its VMI. */
type Owner = Omit<Extract<OwnerFacts, { kind: 'found' }>, 'kind'>;

/** Only `compute` is padded and requests device resources. @throws ParseError if an amount of the VMI is malformed */
export function cpusOfLauncher(launcher: Launcher, owner: Owner): PodCpus {
  const { vmi, resources } = owner;
  const { to, why, threadsPerCore, findings } = decideAlignment(launcher, owner);
  const bearer: ContainerPath = { list: 'containers', index: launcher.compute };
  const cpus = to ?? integralAt(resources, bearer)?.cpus ?? 0;
  const answered = to !== undefined || why === 'aligned';
  return {
    exclusive: resources.exclusive,
    answered,
    threadsPerCore,
    amounts: resources.integral.map(({ list, index, cpus: requestedCpus }) => ({
      list,
      cpus: isAt(bearer, { list, index }) ? cpus : requestedCpus,
    })),
    containers: [{ ...bearer, cpus: to }],
    bearer,
    plumblineResources: [],
    stated: answered ? { [COMPUTE]: cpus } : {},
    padding: cpus - launcherCpus(vmi).total,
    unpadded: why !== undefined && wantsWholeCores(launcher.pod.metadata) ? UNPADDED[why] : undefined,
    findings,
  };
}

interface Alignment {
  /** The new resources.{requests,limits}.cpu of `compute`; undefined: it is not padded. */
  readonly to?: number;
  readonly why?: NoPadding;
  /** Threads per core that the CPUs were compared with; undefined if they were not compared. */
  readonly threadsPerCore?: number;
  readonly findings: readonly Finding[];
}

type NoPadding =
  | 'not-annotated'
  | 'gate-off'
  | 'cpus-from-claim'
  | 'not-dedicated'
  | 'not-isolated'
  | 'pod-level-resources'
  | 'no-exclusive-cpus'
  | 'aligned';

/**
 * Rounds the pod's current request, not the VMI's, up to whole cores: a second pass changes nothing, and KubeVirt's
 * even-parity padding is not doubled, but corrected where the result is odd. @throws ParseError
 */
export function decideAlignment(
  { pod: { metadata }, compute, settings: { gate, policy } }: Launcher,
  { vmi, resources, cluster }: Owner,
): Alignment {
  const candidates = askedMultiples(cluster.candidates);
  const isAnnotated = wantsWholeCores(metadata);
  const { cpu = {} } = vmi.spec.domain;
  const annotated = annotationFindings(metadata, cpu, gate);
  if (policy === 'annotated' && !isAnnotated) return { why: 'not-annotated', findings: annotated };
  if (!gate) return { why: 'gate-off', findings: annotated };
  if (cpu.dra !== undefined) return { why: 'cpus-from-claim', findings: annotated };
  if (cpu.dedicatedCpuPlacement !== true) return { why: 'not-dedicated', findings: annotated };
  if (cpu.isolateEmulatorThread !== true) return { why: 'not-isolated', findings: annotated };
  const threadsPerCore = targetThreadsPerCore(policy, isAnnotated, candidates);
  const computePath = { list: 'containers', index: compute } as const;
  const findings = [
    ...annotated,
    ...mixedFinding(candidates, threadsPerCore),
    ...misalignedFindings(resources, computePath, threadsPerCore),
    ...obstacleFindings(resources, 'the launcher pod'),
  ];
  if (resources.isPodLevel) return { why: 'pod-level-resources', findings };
  const container = integralAt(resources, computePath);
  if (container?.hasEqualLimit !== true) return { why: 'no-exclusive-cpus', findings };
  const to = alignedCpus(neededCpus(vmi, container.cpus), threadsPerCore);
  if (to === container.cpus) return { why: 'aligned', threadsPerCore, findings };
  return { to, threadsPerCore, findings };
}

/** `auto` follows the nodes. Without any report it uses the annotation's promise of an even number. */
function targetThreadsPerCore(policy: AlignmentPolicy, isAnnotated: boolean, candidates: readonly number[]): number {
  if (policy !== 'auto') return annotatedThreadsPerCore(candidates);
  if (candidates.length === 0) return isAnnotated ? annotatedThreadsPerCore([]) : 1;
  return Math.max(1, ...new Set(candidates));
}

/**
 * KubeVirt's even parity counts a supplemental pool twice: with an odd pool and odd vCPUs it renders one CPU fewer than
 * virt-launcher pins to. Rounding corrects that, but not without SMT. Only for a launcher exactly as KubeVirt rendered
 * it.
 */
function neededCpus(vmi: VmiShape, from: number): number {
  return launcherCpus(vmi).total === from ? Math.max(from, pinnedCpus(vmi).total) : from;
}

function misalignedFindings({ integral }: PodResources, compute: ContainerPath, threadsPerCore: number): Finding[] {
  return integral
    .filter((container) => !isAt(compute, container) && !isAligned(container.cpus, threadsPerCore))
    .map(({ name, cpus }) => ({
      severity: 'warning',
      code: 'misaligned-container',
      message: `container ${name} asks for ${countText(cpus, 'exclusive CPU')}, no whole cores of ${threadsPerCore} threads: full-pcpus-only nodes reject the pod. Give it a multiple of ${threadsPerCore}, or a fraction for the shared pool`,
    }));
}
