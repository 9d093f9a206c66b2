import { alignedCpus } from '../alignment.ts';
import { NUMA_AFFINITY_ANNOTATION } from '../names.ts';
import { NETWORKS_ANNOTATION, parseAttachments, parseRef, refText } from '../networks/attachments.ts';
import type { NetworkedVmi } from '../networks/interfaces.ts';
import { wholeCpus } from './amounts.ts';
import { requestOf } from './containers.ts';
import { EVEN_PARITY_ANNOTATION, launcherCpus } from './cpus.ts';
import type { PodShape, VmiShape } from './shapes.ts';

/** The annotations of a VMI that a decision about its launcher reads. */
export const READ_ANNOTATIONS: readonly string[] = [NUMA_AFFINITY_ANNOTATION, EVEN_PARITY_ANNOTATION];

/** What launchers are rounded up to: unpadded ones to 1. */
const THREADS_PER_CORE = [1, 2, 4, 8];

/**
 * Whether a launcher looks as if KubeVirt had rendered it from this state of its VMI: the annotations that are read are
 * the same, the CPUs are the VMI's or those padded, and every network attached is one of the VMI's. If not, the copy of
 * the VMI may be older than the pod and must be read again.
 * @param compute the index of the container in spec.containers
 * @throws ParseError if an amount or the networks annotation is malformed
 */
export function fitsLauncher(pod: PodShape, compute: number, namespace: string, vmi: VmiShape & NetworkedVmi): boolean {
  for (const name of READ_ANNOTATIONS) {
    if (pod.metadata.annotations?.[name] !== vmi.metadata.annotations?.[name]) return false;
  }
  if (vmi.spec.domain.cpu?.dedicatedCpuPlacement === true) {
    const container = pod.spec.containers[compute];
    const cpus = container && wholeCpus(requestOf(container, 'cpu') ?? '0');
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
