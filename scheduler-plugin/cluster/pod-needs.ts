import type { Pod } from '../../kube/resources.ts';
import { isExempt } from '../../model/cni/decide.ts';
import { type PodRequest, reducedRequest } from '../../model/kubelet/pod-request.ts';
import { isNetworkResource } from '../../model/kubelet/report.ts';
import { DPU_EXEMPT_NAMESPACES, isNearResource, PLACED_RESOURCE } from '../../model/names.ts';
import { needsKey, type PlacementNeeds } from '../../model/placement/needs.ts';
import { isExclusive, placementNeedsOf } from '../../model/placement/pod-needs.ts';

/** Which pods count as needing the DPU of a node whose network it makes. */
export type DpuScope = 'all' | 'attached';

/** What a pod needs of its node, read from the pod alone: the webhook has put it there. */
export interface PodNeeds extends PlacementNeeds {
  /** The same for pods alike: see needsKey. */
  readonly key: string;
  /** Some container gets CPUs of its own. */
  readonly exclusive: boolean;
  /** Whether its network would be made by the node's DPU. */
  readonly dpu: boolean;
  /** The names of its interfaces, which are in the texts of verdicts: pods alike may differ in them. */
  readonly interfaces: string;
}

/**
 * Reads needs, sharing what pods alike have in common: ten thousand launchers come in a few shapes.
 */
export interface NeedsReader {
  /** @throws ParseError if an amount is no quantity */
  read(pod: Pod): PodNeeds;
}

/** Shapes remembered; beyond that all are forgotten and found again. */
const REMEMBERED = 512;

/** @param dpuExempt namespaces whose pods are never kept from a node with a dead DPU, as the CNI gate has them */
export function createNeedsReader(dpuScope: DpuScope, dpuExempt = DPU_EXEMPT_NAMESPACES): NeedsReader {
  const shared = new Map<string, Omit<PodNeeds, 'request'> & { readonly request: PodRequest }>();
  return {
    read(pod) {
      const fresh = needsOf(pod, dpuScope, dpuExempt);
      const id = `${fresh.key}${fresh.dpu}${fresh.request.guaranteed}${fresh.interfaces}`;
      let common = shared.get(id);
      if (common === undefined) {
        if (shared.size >= REMEMBERED) shared.clear();
        common = fresh;
        shared.set(id, common);
      }
      return { ...common, request: { ...common.request, uid: fresh.request.uid } };
    },
  };
}

function needsOf(pod: Pod, dpuScope: DpuScope, dpuExempt: readonly string[]): PodNeeds {
  const whole = placementNeedsOf(pod);
  const needs = { ...whole, request: reducedRequest(whole.request) };
  return {
    ...needs,
    key: needsKey(needs),
    exclusive: isExclusive(needs),
    dpu: needsDpu(pod, dpuScope, dpuExempt),
    interfaces: JSON.stringify(needs.networks.map(({ name }) => name)),
  };
}

/**
 * Pods on the host's own network start without the DPU. DaemonSet pods, which would otherwise be stuck on a node under
 * repair, and pods of the system's namespaces are exempt; of the latter the CNI gate makes an exception too.
 */
function needsDpu(pod: Pod, dpuScope: DpuScope, dpuExempt: readonly string[]): boolean {
  const isDaemon = pod.metadata.ownerReferences?.some(
    ({ kind, controller }) => controller === true && kind === 'DaemonSet',
  );
  if (pod.spec.hostNetwork === true || isDaemon === true) return false;
  if (isExempt(pod.metadata.namespace ?? '', dpuExempt)) return false;
  return dpuScope === 'all' || hasNetworkDevice(pod);
}

/** KubeVirt's devices and our own markers are on no network's card. */
function isNoNetworkDevice(resource: string): boolean {
  if (resource.startsWith('devices.kubevirt.io/') || resource === PLACED_RESOURCE) return true;
  return isNetworkResource(resource) || isNearResource(resource);
}

/**
 * Whether the pod is given a device that could be a virtual function of the DPU, as requests or as limits. Which
 * extended resource is a network's is configured in its NAD; others (GPUs) count too, which errs on the safe side.
 */
function hasNetworkDevice({ spec }: Pod): boolean {
  return [...spec.containers, ...(spec.initContainers ?? [])].some(({ resources }) =>
    [...Object.keys(resources?.requests ?? {}), ...Object.keys(resources?.limits ?? {})].some(
      (name) => name.includes('/') && !isNoNetworkDevice(name),
    ),
  );
}
