import { CPUS_FROM_CLAIM, wantsWholeCores } from '../launcher/annotation.ts';
import { type ContainerPath, integralAt, isAt } from '../launcher/containers.ts';
import { launcherCpus } from '../launcher/cpus.ts';
import { askedMultiples } from '../launcher/smt-affinity.ts';
import { COMPUTE } from '../shapes.ts';
import { decideAlignment, type NoPadding } from './alignment.ts';
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

/** Only `compute` is padded and requests device resources. @throws ParseError if an amount of the VMI is malformed */
export function cpusOfLauncher(
  { pod, compute, settings }: Pick<LauncherFacts, 'pod' | 'compute' | 'settings'>,
  { vmi, resources, cluster }: Omit<Extract<OwnerFacts, { kind: 'found' }>, 'kind'>,
): PodCpus {
  const { metadata } = pod;
  const candidates = askedMultiples(cluster.candidates);
  const request = { metadata, resources, compute, vmi, candidates, ...settings };
  const { to, why, threadsPerCore, findings } = decideAlignment(request);
  const bearer: ContainerPath = { list: 'containers', index: compute };
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
    unpadded: why !== undefined && wantsWholeCores(metadata) ? UNPADDED[why] : undefined,
    findings,
  };
}
