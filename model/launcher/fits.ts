import { alignedCpus } from '../alignment.ts';
import { NUMA_AFFINITY_ANNOTATION } from '../names.ts';
import { NETWORKS_ANNOTATION, parseAttachments, parseRef, refText } from '../networks/attachments.ts';
import type { NetworkedVmi } from '../networks/interfaces.ts';
import { integralCpus } from '../quantity.ts';
import { requestOf } from './containers.ts';
import { EVEN_PARITY_ANNOTATION, launcherCpus } from './cpus.ts';
import type { PodShape, VmiShape } from './shapes.ts';

/** Annotations of a VMI that affect the decision about its launcher. */
export const READ_ANNOTATIONS: readonly string[] = [NUMA_AFFINITY_ANNOTATION, EVEN_PARITY_ANNOTATION];

/** Multiples to which a launcher may have been rounded; 1 is for an unpadded one. */
const THREADS_PER_CORE = [1, 2, 4, 8];

/**
 * Whether KubeVirt could have rendered a launcher from this state of its VMI: the relevant annotations are equal, the
 * CPUs are the VMI's or a padded number of them, and every attached network belongs to the VMI. If not, the cached VMI
 * may be older than the pod and must be read again.
 * @param compute index of the container in spec.containers
 * @throws ParseError if an amount or the networks annotation is malformed
 */
export function fitsLauncher(pod: PodShape, compute: number, namespace: string, vmi: VmiShape & NetworkedVmi): boolean {
  for (const name of READ_ANNOTATIONS) {
    if (pod.metadata.annotations?.[name] !== vmi.metadata.annotations?.[name]) return false;
  }
  if (vmi.spec.domain.cpu?.dedicatedCpuPlacement === true) {
    const container = pod.spec.containers[compute];
    const cpus = container && integralCpus(requestOf(container, 'cpu') ?? '0');
    const { total } = launcherCpus(vmi);
    if (!THREADS_PER_CORE.some((threads) => alignedCpus(total, threads) === cpus)) return false;
  }
  const text = pod.metadata.annotations?.[NETWORKS_ANNOTATION];
  if (text === undefined) return true;
  const own = new Set(
    (vmi.spec.networks ?? []).flatMap(({ multus }) =>
      multus ? [refText(parseRef(multus.networkName, namespace))] : [],
    ),
  );
  return parseAttachments(text, namespace).every((attachment) => own.has(refText(attachment)));
}
