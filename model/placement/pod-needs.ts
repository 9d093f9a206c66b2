import { ANNOTATED_THREADS_PER_CORE, isAligned } from '../alignment.ts';
import { type PodRequest, podRequestOf } from '../kubelet/pod-request.ts';
import type { Pod as KubeletPod } from '../kubelet/pod-shape.ts';
import { wantsFullPcpus } from '../launcher/annotation.ts';
import { maskWishOf } from '../launcher/mask-wish.ts';
import { isLauncher } from '../launcher/recognize.ts';
import { PLACEMENT_ANNOTATION } from '../names.ts';
import type { PlacementNeeds } from './needs.ts';
import { neededNetworks, parseWishes } from './wishes.ts';

/** The part of a pod that says what it needs of a node. */
export interface NeedyPod extends KubeletPod {
  readonly metadata: {
    readonly uid?: string | undefined;
    readonly labels?: Readonly<Record<string, string>> | undefined;
    readonly annotations?: Readonly<Record<string, string>> | undefined;
  };
}

/**
 * What a pod needs of its node, read from the pod alone: the webhook has put it there.
 * @throws ParseError if an amount is no quantity, or a CPU mask cannot be read
 */
export function placementNeedsOf(pod: NeedyPod): PlacementNeeds {
  const request = podRequestOf(pod);
  const devices = request.containers.flatMap((container) => [...container.devices.keys()]);
  const wishes = parseWishes(pod.metadata.annotations?.[PLACEMENT_ANNOTATION]);
  const shared = request.containers.every(({ cpus }) => cpus === 0);
  return {
    request,
    mask: shared && isLauncher(pod.metadata) ? maskWishOf(pod.metadata) : undefined,
    networks: neededNetworks(devices, wishes),
    spansCells: wishes.spansCells,
    wholeCores: wantsFullPcpus(pod.metadata) && isPadded(request),
  };
}

/** Some container gets CPUs of its own. */
export function isExclusive({ request }: PlacementNeeds): boolean {
  return request.containers.some(({ cpus }) => cpus > 0);
}

/**
 * Whether the webhook has kept the annotation's promise. A launcher that it missed has an odd number of CPUs, which no
 * node can give as whole cores: it goes to any node that takes threads.
 */
function isPadded({ containers }: PodRequest): boolean {
  return containers.every(({ kind, cpus }) => kind === 'init' || isAligned(cpus, ANNOTATED_THREADS_PER_CORE));
}
