import { CpuSet, unionOf } from '../../model/cpu-set.ts';
import { Accumulator, type Sorting } from '../../model/kubelet/accumulator.ts';
import { CpuManager } from '../../model/kubelet/cpu-manager.ts';
import { createKubelet } from '../../model/kubelet/kubelet.ts';
import { OptionError, readCpuOptions } from '../../model/kubelet/options.ts';
import { podCpus } from '../../model/kubelet/pod-request.ts';
import { misalignedText, noPhysicalCpusText, Rejection } from '../../model/kubelet/provider.ts';
import { allocateCpus, checkState, releaseCpus, takeByTopology } from '../../model/kubelet/static-policy.ts';
import { TakeError, takeDistributed, takePacked } from '../../model/kubelet/take.ts';
import { type CpuTopology, createTopology, numaMask } from '../../model/kubelet/topology.ts';
import type { Behaviour } from '../../model/kubelet/versions.ts';
import {
  hintsOf,
  hostOf,
  type KubeletCase,
  policyOf,
  readTopologies,
  requestOf,
  sortedHints,
  stateOf,
  type UpstreamFile,
  unwrapped,
  upstreamCases,
} from './kubelet-upstream.ts';
import { type Adapter, differs, type Verdict } from './outcome.ts';

interface Version {
  readonly version: string;
  readonly behaviour: Behaviour;
}
type Check = (item: KubeletCase, topology: CpuTopology, version: Version) => Verdict;
const CHECKS: Readonly<Record<string, Check>> = {
  // Upstream sorts the sockets before it compares them.
  freeSockets: (item, topology) => differs(freeGroups(item, topology, 'sockets').sort(ascending), item.expect),
  freeNUMANodes: (item, topology) => differs(freeGroups(item, topology, 'cells'), item.expect),
  freeCores: (item, topology) => differs(freeGroups(item, topology, 'cores'), item.expect),
  freeCPUs: (item, topology) => differs(accumulator(item, topology).sortedCpus(), item.expect),
  freeSocketsAndNUMANodes: (item, topology) =>
    differs(freeGroups(item, topology, 'sockets'), item.expectSockets) ??
    differs(freeGroups(item, topology, 'cells'), item.expectNUMANodes),
  takeByTopologyNUMAPacked: (item, topology) =>
    taken(item, () => {
      const { preferAlignByUncore } = readCpuOptions(item.options);
      return takePacked(topology, availableOf(item), item.numCPUs ?? 0, sortingOf(item), preferAlignByUncore);
    }),
  takeByTopologyNUMADistributed: (item, topology) =>
    taken(item, () =>
      takeDistributed(topology, availableOf(item), item.numCPUs ?? 0, item.cpuGroupSize ?? 1, sortingOf(item)),
    ),
  staticAllocate,
  staticAllocateUncore,
  staticAllocateAllContainers: (item, topology) => {
    const manager = managerOf(item, topology);
    for (const container of requestOf(item.pod!).containers) manager.allocate(container, null);
    const { defaultSet, assignments } = manager.commit(stateOf(item));
    const { defaultCPUSetAfterRemove } = item.expect;
    const pool =
      defaultCPUSetAfterRemove === undefined
        ? undefined
        : released(defaultSet, assignments.get(item.pod?.uid ?? ''), item);
    return (
      differs(`${defaultSet}`, item.expect.defaultCPUSetAfterAlloc) ??
      differs(pool && `${pool}`, defaultCPUSetAfterRemove)
    );
  },
  staticAllocateEach: (item, topology) => {
    const manager = managerOf(item, topology);
    const { containers } = requestOf(item.pod!);
    for (const container of containers) manager.allocate(container, null);
    const cpusets = Object.fromEntries(containers.map(({ name }) => [name, `${manager.assigned(name)}`]));
    return differs(cpusets, item.expect.cpusets);
  },
  allocateCPUs: (item, topology) =>
    taken(item, () =>
      allocateCpus(policyOf(item, topology), stateOf(item).defaultSet, item.numCPUs ?? 0, hintMask(item, topology)),
    ),
  staticStart: (item, topology) => {
    const state = stateOf(item);
    const checked = checkState(policyOf(item, topology), state.defaultSet, state.assignments);
    if ('defaultSet' in checked) return differs(`${checked.defaultSet}`, item.expect.defaultCPUSet);
    const expected = item.expect.error;
    return differs(checked.error, typeof expected === 'object' ? expected.message : undefined);
  },
  staticRemove: (item) => {
    const { defaultSet, assignments } = stateOf(item);
    return differs(`${released(defaultSet, assignments.get(item.podUID ?? ''), item)}`, item.expect.defaultCPUSet);
  },
  smtAlignmentErrorText: ({ error, expect }) =>
    differs(
      error?.CausedByPhysicalCPUs
        ? noPhysicalCpusText(error.AvailablePhysicalCPUs, error.RequestedCPUs, error.CpusPerCore)
        : misalignedText(error?.RequestedCPUs ?? 0, error?.CpusPerCore ?? 0),
      expect,
    ),
  policyOptions: (item) => {
    const enabled = Object.values(item.expect.value ?? item.options ?? {}).filter((value) =>
      /^(?:1|t|true)$/i.test(`${value}`),
    );
    try {
      const options = readCpuOptions(item.options);
      if (item.expect.error) return 'expected an error';
      return differs(Object.values(options).filter(Boolean).length, enabled.length);
    } catch (error) {
      if (!(error instanceof OptionError)) throw error;
      return item.expect.error ? undefined : error.message;
    }
  },
  hardwareOptions: (item, topology, { version }) => {
    const cpuManager = { policy: 'static', options: item.options };
    const topologyManager = { policy: item.policy ?? 'none' };
    const node = { version, host: hostOf(topology), reserved: CpuSet.of([0]) };
    const kubelet = createKubelet({ ...node, cpuManager, topologyManager });
    return differs('unpredictable' in kubelet, item.expect.error);
  },
  takeByTopology: (item, topology, { behaviour }) =>
    taken(item, () => {
      const options = readCpuOptions(item.options);
      return takeByTopology(topology, options, availableOf(item), item.numCPUs ?? 0, { behaviour });
    }),
  cpuTopologyHints,
  podGuaranteedCPUs: (item) => differs(podCpus(requestOf(item.pod!)), item.expect.cpus),
};
/** kubelet-cpu-assignment-cases.json: the kubelet's own unit tests of the static CPU manager. */
export const run: Adapter = (content, load) => {
  const topologies = readTopologies(load('kubelet-topologies'));
  return upstreamCases(content as UpstreamFile<KubeletCase>, (item, behaviour, version) => {
    const check = CHECKS[item.kind];
    if (!check) return `unknown kind ${item.kind}`;
    const topology = topologies.get(item.topology ?? '');
    if (item.topology !== undefined && !topology) return `unknown topology ${item.topology}`;
    return check(item, topology ?? EMPTY, { version, behaviour });
  });
};
function staticAllocate(item: KubeletCase, topology: CpuTopology): Verdict {
  const manager = managerOf(item, topology);
  const request = requestOf(item.pod!);
  const container = request.containers.find(({ name }) => name === item.container);
  if (!container) return `no container ${item.container}`;
  try {
    manager.allocate(container, hintMask(item, topology));
  } catch (error) {
    return error instanceof Rejection ? rejected(item, error) : `${error}`;
  }
  if (item.expect.error) return `expected an error, got ${manager.assigned(container.name)}`;
  return differs(`${manager.assigned(container.name)}`, item.expect.cpuset);
}
function staticAllocateUncore(item: KubeletCase, topology: CpuTopology): Verdict {
  const manager = managerOf(item, topology);
  const request = requestOf(item.pod!);
  for (const container of request.containers) manager.allocate(container, hintMask(item, topology));
  const first = request.containers.find(({ kind }) => kind === 'app') ?? request.containers[0];
  const cpus = unionOf(request.containers.map(({ name }) => manager.assigned(name)));
  if (item.expect.firstContainerCpuset !== undefined) {
    return differs(`${manager.assigned(first?.name ?? '')}`, item.expect.firstContainerCpuset);
  }
  const caches = new Set([...cpus].map((cpu) => topology.uncores.of.get(cpu) ?? -1));
  return differs([...caches].sort(ascending), [...(item.expect.uncoreCacheIDs ?? [])].sort(ascending));
}
function cpuTopologyHints(item: KubeletCase, topology: CpuTopology): Verdict {
  const [container, ...others] = requestOf(item.pod!).containers;
  if (!container) return 'no container';
  const hints = (provided: ReturnType<CpuManager['podHints']>) => hintsOf(topology, provided?.get('cpu') ?? []);
  const expected = sortedHints(item.expect.hints ?? []);
  const manager = managerOf(item, topology);
  const single = others.length === 0 ? differs(hints(manager.containerHints(container)), expected) : undefined;
  return differs(hints(manager.podHints()), expected) ?? single;
}
function rejected(item: KubeletCase, rejection: Rejection): Verdict {
  const expected = item.expect.error;
  if (!expected || expected === true) return `unexpected rejection: ${rejection.message}`;
  // An SMT alignment error stands alone; every other one the kubelet wraps in its own words.
  const text = rejection.reason === 'SMTAlignmentError' ? rejection.message : unwrapped(rejection.message);
  const type = expected.type ? differs(rejection.reason, expected.type) : undefined;
  return type ?? (expected.message === undefined ? undefined : differs(text, expected.message));
}
/** The shared pool after the removal of the case's container. */
function released(
  pool: CpuSet,
  containers: ReadonlyMap<string, CpuSet> | undefined,
  { container = '' }: KubeletCase,
): CpuSet {
  const cpus = containers?.get(container);
  const others = new Map(containers);
  others.delete(container);
  return cpus ? releaseCpus(pool, cpus, others.values()) : pool;
}
function taken(item: KubeletCase, take: () => CpuSet): Verdict {
  try {
    const cpus = take();
    if (item.expect.error) return `expected an error, got ${cpus}`;
    return differs(`${cpus}`, item.expect.cpuset);
  } catch (error) {
    if (!(error instanceof TakeError)) throw error;
    const expected = item.expect.error;
    return typeof expected === 'object' ? differs(error.message, expected.message) : `unexpected: ${error.message}`;
  }
}
function managerOf(item: KubeletCase, topology: CpuTopology): CpuManager {
  return new CpuManager(policyOf(item, topology), stateOf(item), requestOf(item.pod!));
}
function accumulator(item: KubeletCase, topology: CpuTopology): Accumulator {
  return new Accumulator(topology, availableOf(item), 0, 'packed');
}
function freeGroups(item: KubeletCase, topology: CpuTopology, level: 'sockets' | 'cells' | 'cores'): number[] {
  return accumulator(item, topology).wholeGroups(topology[level]);
}
function availableOf(item: KubeletCase): CpuSet {
  return CpuSet.parse(item.available ?? '');
}
function sortingOf({ sorting }: KubeletCase): Sorting {
  return sorting === 'spread' ? 'spread' : 'packed';
}
function hintMask({ hintNUMA }: KubeletCase, topology: CpuTopology): number | null {
  return hintNUMA ? numaMask(topology, hintNUMA) : null;
}
function ascending(a: number, b: number): number {
  return a - b;
}
const EMPTY = createTopology([], { cpus: 0, cores: 0, sockets: 0, cells: 0, uncores: 0 });
