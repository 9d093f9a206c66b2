import { type CpuSet, unionOf } from '../cpu-set.ts';
import type { Admission } from '../kubelet/admission.ts';
import type { DevicePool, DevicePools } from '../kubelet/devices.ts';
import type { Kubelet } from '../kubelet/kubelet.ts';
import { type KubeletState, ownedCpus } from '../kubelet/state.ts';
import { isNearResource, nearResource, physnetResource, TUNNEL_RESOURCE } from '../names.ts';
import { hintCells } from '../networks/preferred-hint.ts';
import type { PlacementHost, PlacementNeeds } from './needs.ts';
import { cellsTouched } from './networks.ts';

/** Whether a pod asks the kubelet for the NUMA node of a preferred network. */
export function asksForHint({ request }: PlacementNeeds): boolean {
  return nearResources({ request }).length > 0;
}

function nearResources({ request }: Pick<PlacementNeeds, 'request'>): string[] {
  return request.containers.flatMap(({ devices }) => [...devices.keys()].filter(isNearResource));
}

/**
 * The state with the devices of preferred networks, as the node's agent advertises them for the current owners.
 * Resources whose devices have no NUMA node are left out: like unknown resources, they do not affect the placement.
 */
export function withHints(node: PlacementHost, state: KubeletState): KubeletState {
  if (!node.hints) return state;
  const { physnets, tunnel } = node.networks;
  const networks: [string, CpuSet][] = [...physnets].map(([name, cells]) => [physnetResource(name), cells]);
  if (tunnel !== undefined) networks.push([TUNNEL_RESOURCE, tunnel]);
  const owned = ownedCpus(state);
  const hinting = { ...node, topologyPolicy: node.alignment, givesMemory: state.memory !== undefined, owned };
  const pools = new Map(withoutHints(state).pools);
  for (const [resource, cells] of networks) {
    const nodes = hintCells(hinting, cells).toArray();
    if (nodes.length > 0) pools.set(nearResource(resource), poolOn(nodes));
  }
  return { ...state, pools };
}

/** A pool with one device, which stays available when it is allocated. */
function poolOn(nodes: readonly number[]): DevicePool {
  return { devices: [{ id: '0', healthy: true, nodes }], endless: true };
}

function withoutHints(state: KubeletState): KubeletState {
  return { ...state, pools: new Map([...state.pools].filter(([name]) => !isNearResource(name))) };
}

/**
 * Whether an outdated hint would split a pod over NUMA nodes. The agent advertises another place when it sees new
 * owners, and the kubelet may admit pods faster than that. Each place that was advertised before or after any of the
 * pods in flight may therefore apply to this pod.
 */
export function isSplitByLateHint(
  needs: PlacementNeeds,
  node: PlacementHost,
  kubelet: Kubelet,
  start: KubeletState,
  inFlight: readonly PlacementNeeds[],
): boolean {
  const wanted = nearResources(needs);
  const possible = new Map<string, DevicePools>();
  let state = start;
  for (const pod of [...inFlight, undefined]) {
    state = withHints(node, state);
    const { pools } = state;
    const drawn = wanted.filter((name) => pools.has(name));
    if (drawn.length > 0) possible.set(drawn.join(), pools);
    const admission = pod && kubelet.admit(state, pod.request);
    if (admission?.admitted) state = admission.state;
  }
  const cellsBy = (admission: Admission): number =>
    admission.admitted
      ? cellsTouched(node.host, unionOf(admission.containers.map(({ cpus }) => cpus))).length
      : Number.POSITIVE_INFINITY;
  const without = cellsBy(kubelet.admit(withoutHints(state), needs.request));
  return [...possible.values()].some((pools) => cellsBy(kubelet.admit({ ...state, pools }, needs.request)) > without);
}
