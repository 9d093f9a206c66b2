import { CpuSet } from '../../model/cpu-set.ts';
import { MAX_CELL_ID } from '../../model/host.ts';
import { DeviceManager } from '../../model/kubelet/device-manager.ts';
import { type DevicePool, deviceHints, handOutOrder, indexPool } from '../../model/kubelet/devices.ts';
import type { ProviderHints } from '../../model/kubelet/hints.ts';
import { mergeHints, type TopologyPolicy } from '../../model/kubelet/merge.ts';
import { podDevices } from '../../model/kubelet/pod-request.ts';
import { Rejection } from '../../model/kubelet/provider.ts';
import type { KubeletState } from '../../model/kubelet/state.ts';
import { type CpuTopology, numaMask } from '../../model/kubelet/topology.ts';
import type { Behaviour } from '../../model/kubelet/versions.ts';
import {
  type FixtureHint,
  type FixturePod,
  hintsOf,
  requestOf,
  sortedEntries,
  sortedHints,
  topologyOfNodes,
  type UpstreamCase,
  type UpstreamFile,
  unwrapped,
  upstreamCases,
} from './kubelet-upstream.ts';
import { type Adapter, differs, type Verdict } from './outcome.ts';

type Allocations = Readonly<Record<string, Readonly<Record<string, Readonly<Record<string, readonly string[]>>>>>>;
type Devices = Readonly<Record<string, readonly number[] | null>>;

interface DeviceCase extends UpstreamCase {
  readonly kind: string;
  readonly numaIds?: readonly number[];
  readonly devices: Readonly<Record<string, Devices>>;
  readonly allocated?: Allocations;
  readonly pod: FixturePod;
  /** Pods that were admitted before. */
  readonly pods: readonly FixturePod[];
  readonly registered: readonly string[];
  readonly available: readonly string[];
  readonly reusable: readonly string[];
  readonly hint: readonly number[] | null;
  readonly request: number;
  readonly others: Readonly<Record<string, readonly FixtureHint[]>>;
  readonly policies: readonly TopologyPolicy[];
  // biome-ignore lint/suspicious/noExplicitAny: each kind of case has expected values of its own form.
  readonly expect: any;
}

interface Node {
  readonly topology: CpuTopology;
  readonly behaviour: Behaviour;
}

const CHECKS: Readonly<Record<string, (item: DeviceCase, node: Node) => Verdict>> = {
  // The kubelet drops the devices of pods that are gone; in this test of upstream only the pod itself is there.
  hints: (item, node) => {
    const own = Object.fromEntries(Object.entries(item.allocated ?? {}).filter(([uid]) => uid === item.pod.uid));
    const [container] = requestOf(item.pod).containers;
    return container
      ? differsFrom(item, node, managerOf({ ...item, allocated: own }, node).containerHints(container))
      : 'none';
  },
  podHints: (item, node) => differsFrom(item, node, managerOf(item, node).podHints()),
  generate: (item, node) => differs(hintsOf(node.topology, generated(item, node)), sortedHints(item.expect)),
  mergeHints: (item, node) => {
    const maskOf = (nodes: readonly number[] | null) => numaMask(node.topology, nodes ?? []);
    const others = Object.entries(item.others).map(([name, hints]): ProviderHints => {
      return new Map([[name, hints.map(({ numaNodes: nodes, preferred }) => ({ mask: maskOf(nodes), preferred }))]]);
    });
    const providers = [new Map([['gpu', generated(item, node)]]), ...others];
    const all = 2 ** node.topology.numaIds.length - 1;
    const merged = item.policies.map((policy) => mergeHints(policy, { all }, providers).hint);
    const expected = item.policies.map(() => ({ mask: maskOf(item.expect), preferred: true }));
    return differs(merged, expected);
  },
  aligned: (item, node) => {
    const [[resource, devices] = ['', {}]] = Object.entries(item.devices);
    const pod = { uid: 'pod', containers: [{ name: 'c', resources: { limits: { [resource]: `${item.request}` } } }] };
    const manager = managerOf({ ...item, pod }, node);
    for (const container of requestOf(pod).containers)
      manager.allocate(container, item.hint && numaMask(node.topology, item.hint));
    const ids = [...(manager.assigned('c').get(resource) ?? [])];
    const counts: Record<string, number> = {};
    for (const [first] of ids.map((id) => devices[id] ?? []))
      if (first !== undefined) counts[first] = (counts[first] ?? 0) + 1;
    return differs(
      [ids.length, sortedEntries(Object.entries(counts))],
      [item.request, sortedEntries(Object.entries(item.expect))],
    );
  },
  near: (item, { topology }) => {
    const pool = indexPool(topology, poolOf(Object.values(item.devices)[0] ?? {}));
    const order = handOutOrder(pool, new Set(item.available), numaMask(topology, item.hint ?? []));
    return differs(order, item.expect.flat());
  },
  podRequest: (item) => {
    const requests = [...podDevices(requestOf(item.pod))].filter(([name]) => item.registered.includes(name));
    return differs(sortedEntries(requests), sortedEntries(Object.entries(item.expect)));
  },
  allocate,
};

/** kubelet-devicemanager-cases.json: the kubelet's own unit tests of the device manager. */
export const run: Adapter = (content) =>
  upstreamCases(content as UpstreamFile<DeviceCase>, (item, behaviour) => {
    const check = CHECKS[item.kind];
    if (!check) return `unknown kind ${item.kind}`;
    return check(item, { topology: topologyOfNodes(nodesOf(item)), behaviour });
  });

function allocate(item: DeviceCase, node: Node): Verdict {
  let state = stateOf(item);
  for (const pod of item.pods) {
    const before = new DeviceManager(node.topology, node.behaviour, state, requestOf(pod));
    for (const container of requestOf(pod).containers) before.allocate(container, null);
    state = before.commit(state);
  }
  const manager = new DeviceManager(node.topology, node.behaviour, state, requestOf(item.pod));
  let message: string | undefined;
  try {
    for (const container of requestOf(item.pod).containers) manager.allocate(container, null);
    state = manager.commit(state);
  } catch (error) {
    if (!(error instanceof Rejection)) throw error;
    message = unwrapped(error.message);
  }
  const { error, allocated = {}, counts = {}, within = {}, disjoint = [] } = item.expect;
  const inUse = (resource: string) =>
    [...state.devices.values()].flatMap((pod) => [...pod.values()].flatMap((all) => [...(all.get(resource) ?? [])]));
  const used = Object.keys(allocated).map((resource) => [resource, new Set(inUse(resource)).size]);
  const idsOf = (container: string) => [...manager.assigned(container).values()].flatMap((ids) => [...ids]);
  const perContainer = Object.entries(counts).map(([resource, ofContainers]) => {
    const sizes = Object.keys(ofContainers as object).map((name) => [name, manager.assigned(name).get(resource)?.size]);
    return [resource, Object.fromEntries(sizes)];
  });
  const shared = Object.keys(counts)[0] ?? '';
  const idsOfShared = (container: string) => [...(manager.assigned(container).get(shared) ?? [])];
  const outside = Object.entries(within).flatMap(([outer, names]) =>
    (names as string[]).flatMap(idsOfShared).filter((id) => !idsOfShared(outer).includes(id)),
  );
  const dedicated = (disjoint as string[]).flatMap(idsOf);
  return (
    differs(message, error) ??
    differs(used, Object.entries(allocated)) ??
    differs(perContainer, Object.entries(counts)) ??
    differs(outside, []) ??
    differs(new Set(dedicated).size, dedicated.length)
  );
}

function generated({ devices, available, reusable, request }: DeviceCase, { topology, behaviour }: Node) {
  const pool = indexPool(topology, poolOf(Object.values(devices)[0] ?? {}));
  return deviceHints(topology, behaviour, pool, new Set(available), new Set(reusable), request) ?? [];
}

function differsFrom({ expect }: DeviceCase, { topology }: Node, hints: ProviderHints): Verdict {
  const expected = Object.entries(expect as Record<string, FixtureHint[] | null>);
  const entries = expected.map(([resource]) => hintsOf(topology, hints?.get(resource) ?? null));
  return differs(
    entries,
    expected.map(([, list]) => list && sortedHints(list)),
  );
}

function managerOf(item: DeviceCase, { topology, behaviour }: Node): DeviceManager {
  return new DeviceManager(topology, behaviour, stateOf(item), requestOf(item.pod));
}

function stateOf({ devices, allocated = {} }: DeviceCase): KubeletState {
  const pods = Object.entries(allocated).map(([uid, containers]) => {
    const ofPod = Object.entries(containers).map(([name, resources]) => {
      return [name, new Map(Object.entries(resources).map(([resource, ids]) => [resource, new Set(ids)]))] as const;
    });
    return [uid, new Map(ofPod)] as const;
  });
  return {
    defaultSet: CpuSet.EMPTY,
    assignments: new Map(),
    pools: new Map(Object.entries(devices).map(([resource, ids]) => [resource, poolOf(ids)])),
    devices: new Map(pods),
  };
}

function poolOf(devices: Devices): DevicePool {
  return { devices: Object.entries(devices).map(([id, nodes]) => ({ id, healthy: true, nodes: nodes ?? undefined })) };
}

/**
 * The case's NUMA nodes: two as in most of upstream's tests, or as many as the devices name. With more than eight the
 * model takes all nodes without devices for one.
 */
function nodesOf({ devices = {}, numaIds }: DeviceCase): readonly number[] {
  const named = Object.values(devices).flatMap((pool) => Object.values(pool).flatMap((nodes) => nodes ?? []));
  if (numaIds && numaIds.length > 8) return [...named, MAX_CELL_ID];
  return numaIds ?? Array.from({ length: Math.max(1, ...named) + 1 }, (_, id) => id);
}
