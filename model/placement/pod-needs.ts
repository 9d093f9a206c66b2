import { ANNOTATED_THREADS_PER_CORE, isAligned } from '../alignment.ts';
import { PlumblineError } from '../errors.ts';
import { type PodRequest, podRequestOf } from '../kubelet/pod-request.ts';
import type { Pod as KubeletPod } from '../kubelet/pod-shape.ts';
import { asksForAlignment, wantsWholeCores } from '../launcher/annotation.ts';
import { maskRequestOf } from '../launcher/mask-request.ts';
import { isLauncher } from '../launcher/recognize.ts';
import { PLACED_RESOURCE, PLACEMENT_ANNOTATION } from '../names.ts';
import type { PlacementNeeds } from './needs.ts';
import { neededNetworks, parsePreferences } from './preferences.ts';

/** Fields of a pod that determine its needs. */
export interface NeedyPod extends KubeletPod {
  readonly metadata: {
    readonly uid?: string | undefined;
    readonly labels?: Readonly<Record<string, string>> | undefined;
    readonly annotations?: Readonly<Record<string, string>> | undefined;
  };
  readonly spec?: KubeletPod['spec'] & { readonly nodeSelector?: Readonly<Record<string, string>> | undefined };
}

/** KubeVirt selects nodes by one of these labels, depending on its release, for VMs with dedicatedCpuPlacement only. */
const DEDICATED_SELECTORS = ['kubevirt.io/cpumanager', 'cpumanager'];

/**
 * The needs of a pod, from the pod alone: the webhook has written them there.
 * @throws ParseError if an amount is not a quantity, or a CPU mask cannot be parsed
 */
export function placementNeedsOf(pod: NeedyPod): PlacementNeeds {
  const request = podRequestOf(pod);
  const devices = request.containers.flatMap((container) => [...container.devices.keys()]);
  const preferences = parsePreferences(pod.metadata.annotations?.[PLACEMENT_ANNOTATION]);
  const shared = request.containers.every(({ cpus }) => cpus === 0);
  const networks = neededNetworks(devices, preferences);
  const asks = networks.length > 0 || devices.includes(PLACED_RESOURCE) || asksForOwnCpus(pod);
  return {
    request,
    mask: shared && isLauncher(pod.metadata) ? maskRequestOf(pod.metadata) : undefined,
    networks,
    spansCells: preferences.spansCells,
    wholeCores: wantsWholeCores(pod.metadata) && isPadded(request),
    mayShare: !shared && !asks,
  };
}

/** The same, but undefined for a pod with a malformed amount or mask: its needs are then not checked. */
export function readableNeedsOf(pod: NeedyPod): PlacementNeeds | undefined {
  try {
    return placementNeedsOf(pod);
  } catch (error) {
    if (error instanceof PlumblineError) return undefined;
    throw error;
  }
}

/**
 * Whether a pod with whole CPUs is useless on shared ones: the launcher of a VM with dedicatedCpuPlacement, or a pod
 * that asks for whole cores. Any other pod with whole CPUs is Guaranteed for other reasons, and most nodes share CPUs.
 */
function asksForOwnCpus({ metadata, spec }: NeedyPod): boolean {
  const dedicated = DEDICATED_SELECTORS.some((label) => spec?.nodeSelector?.[label] === 'true');
  return (isLauncher(metadata) && dedicated) || wantsWholeCores(metadata) || asksForAlignment(metadata);
}

/** Whether some container gets exclusive CPUs. */
export function isExclusive({ request }: Pick<PlacementNeeds, 'request'>): boolean {
  return request.containers.some(({ cpus }) => cpus > 0);
}

/**
 * Whether the webhook has padded the pod. A launcher that the webhook did not see has an odd number of CPUs, which no
 * node can assign as whole cores: it may run on any node that assigns threads.
 */
function isPadded({ containers }: PodRequest): boolean {
  return containers.every(({ kind, cpus }) => kind === 'init' || isAligned(cpus, ANNOTATED_THREADS_PER_CORE));
}
