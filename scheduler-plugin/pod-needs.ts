import type { Pod } from '../kube/resources.ts';
import { podRequestOf } from '../model/kubelet/pod-request.ts';
import { isNetworkResource } from '../model/kubelet/report.ts';
import { wantsFullPcpus } from '../model/launcher/annotation.ts';
import { physnetOfResource, TUNNEL_RESOURCE } from '../model/names.ts';
import type { NetworkNeed, PlacementNeeds } from '../model/placement/needs.ts';

/** What a pod needs of its node, read from the pod alone: the webhook has put it there as requests. */
export interface PodNeeds extends PlacementNeeds {
  /** The device resources of required networks. */
  readonly resources: readonly string[];
  /** Whether its network would be made by the node's DPU. */
  readonly dpu: boolean;
}

/** @throws ParseError if an amount is no quantity */
export function podNeedsOf(pod: Pod): PodNeeds {
  const request = podRequestOf(pod);
  const resources = [
    ...new Set(request.containers.flatMap(({ devices }) => [...devices.keys()]).filter(isNetworkResource)),
  ];
  return {
    request,
    networks: resources.map(networkNeed),
    wholeCores: wantsFullPcpus(pod.metadata),
    resources,
    dpu: needsDpu(pod),
  };
}

function networkNeed(resource: string): NetworkNeed {
  if (resource === TUNNEL_RESOURCE) return { name: resource, kind: 'tunnel', affinity: 'required' };
  return { name: resource, kind: 'physnet', physnet: physnetOfResource(resource), affinity: 'required' };
}

/**
 * Pods on the host's own network start without the DPU, and so must DaemonSet pods, which would otherwise hang on a
 * node that is being repaired.
 */
function needsDpu({ metadata, spec }: Pod): boolean {
  const isDaemon = metadata.ownerReferences?.some(
    ({ kind, controller }) => controller === true && kind === 'DaemonSet',
  );
  return spec.hostNetwork !== true && isDaemon !== true;
}
