import type { Pod, VirtualMachineInstance } from '../kube/resources.ts';
import { integralContainers, qosObstacles } from '../model/launcher/containers.ts';
import { NUMA_AFFINITY_ANNOTATION } from '../model/names.ts';
import { parseAffinityWishes } from '../model/networks/affinity.ts';
import type { NetworkRef } from '../model/networks/attachments.ts';
import { EMPTY_CONTEXT } from '../model/networks/context.ts';
import { interfacesOf } from '../model/networks/interfaces.ts';
import type { NadShape } from '../model/networks/nad.ts';
import { type ResolvedNetwork, resolveNetworks } from '../model/networks/resolve.ts';
import { requiredResources } from '../model/networks/resources.ts';
import type { ClusterView } from './cluster-view.ts';

/** Reads one definition from the API server, for one that may be newer than the watch. */
export type FetchNad = (ref: NetworkRef) => Promise<NadShape | undefined>;

export interface LauncherNetworks {
  readonly networks: readonly ResolvedNetwork[];
  /** Device resources to request, each once. */
  readonly resources: readonly string[];
  readonly warnings: readonly string[];
}

/**
 * Resolves a launcher's networks to the device resources that hold it to their NUMA nodes. A definition that the watch
 * has not brought may have been created a moment ago, so it is asked for once before it counts as unknown.
 * @throws ParseError if an annotation is malformed
 */
export async function resolveLauncherNetworks(
  pod: Pod,
  vmi: VirtualMachineInstance,
  namespace: string,
  view: ClusterView,
  fetchNad: FetchNad,
): Promise<LauncherNetworks> {
  const exclusive = qosObstacles(pod).length === 0 && integralContainers(pod).length > 0;
  const request = {
    interfaces: interfacesOf({ namespace, pod, vmi }),
    wishes: parseAffinityWishes(vmi.metadata.annotations?.[NUMA_AFFINITY_ANNOTATION] ?? ''),
    findNad: view.findNad,
    context: EMPTY_CONTEXT,
    exclusive,
  };
  let resolution = resolveNetworks(request);
  if (resolution.missing.length > 0) {
    const fetched = new Map<string, NadShape>();
    for (const ref of resolution.missing) {
      const nad = await fetchNad(ref);
      if (nad !== undefined) fetched.set(`${ref.namespace}/${ref.name}`, nad);
    }
    const findNad = (ref: NetworkRef) => view.findNad(ref) ?? fetched.get(`${ref.namespace}/${ref.name}`);
    resolution = resolveNetworks({ ...request, findNad });
  }
  const required = requiredResources(resolution.networks, view.reportedNetworks(), exclusive);
  return {
    networks: resolution.networks,
    resources: required.resources,
    warnings: [...resolution.findings, ...required.findings].map((finding) => finding.message),
  };
}
