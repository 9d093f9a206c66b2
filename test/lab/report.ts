import type { PodResources } from '../../kube/kubelet-api/gen/pod-resources.ts';
import type { NodeTopologyStatus } from '../../kube/node-topology.ts';
import { CpuSet } from '../../model/cpu-set.ts';
import type { HostReport } from '../../model/kubelet/host-report.ts';
import { type CellMemory, initialMemory } from '../../model/kubelet/memory-state.ts';
import { countDevices, devicesOfPods, type ListedDevices } from '../../node-agent/assignments/devices.ts';
import { readMemoryState } from '../../node-agent/assignments/memory-checkpoint.ts';
import { UNKNOWN_VIEW } from '../../node-agent/assignments/view.ts';
import { kubeletConfigOf } from '../../node-agent/host/kubelet-config.ts';
import { UNKNOWN_NETWORKS } from '../../node-agent/networks/combine.ts';
import { buildStatus } from '../../node-agent/report/status.ts';
import { inputs, runWith } from '../node-agent/report/inputs-fixture.ts';
import { podResourcesOf } from '../support/pod-resources.ts';
import { deviceCounts, resourcesOf } from './devices.ts';
import { kubeletSettings } from './kubelet-settings.ts';
import type { DrawnPod } from './pods.ts';
import type { RecordedNode } from './recording.ts';
import type { Round } from './rounds.ts';
import { type Snapshot, snapshotOf } from './snapshot.ts';

export type RunningPods = ReadonlyMap<string, DrawnPod>;

/** What a prediction reads of the agent's report, with the names of pods instead of their uids. */
export function reportOfStatus(status: NodeTopologyStatus, names: ReadonlyMap<string, string>): HostReport {
  const { conditions: _, summary: _summary, memoryManager, ...report } = status;
  const assignments = status.assignments.map(({ podUID, container, cpus }) => {
    return { podUID: names.get(podUID) ?? podUID, container, cpus };
  });
  // The kubelet also has a table for huge pages of a size that the NUMA node has none of. It does not ask the kernel for
  // free ones.
  const cells = memoryManager?.cells?.map(({ freePages: _free, ...cell }) => {
    const present = Object.entries(cell.state?.free ?? {}).filter(
      ([type]) => type === 'memory' || cell.hugePages?.[type] !== undefined,
    );
    return { ...cell, ...(cell.state && { state: { ...cell.state, free: Object.fromEntries(present) } }) };
  });
  const memory = memoryManager && { memoryManager: { ...memoryManager, ...(cells && { cells }) } };
  return { ...report, ...memory, assignments: assignments.sort(byPodAndContainer) };
}

/** What the agent must publish, built by its own code. PodResources lists no init container that is not restartable. */
export function expectedReport(node: RecordedNode, snapshot: Snapshot, pods: RunningPods): HostReport {
  const { host, memory = { cells: [], distances: undefined }, offline = '', round, version } = node;
  const owned = Object.entries(snapshot.cpus).flatMap(([podUID, containers]) =>
    Object.entries(containers).map(([container, cpus]) => ({ podUID, container, cpus: CpuSet.parse(cpus) })),
  );
  const podsWithCpus = new Set(Object.keys(snapshot.cpus));
  const status = buildStatus(
    {
      ...inputs,
      run: runWith({ description: host, memory, offline: CpuSet.parse(offline) }),
      kubeletVersion: node.behavesLike ?? version,
      capacity: Object.fromEntries([...deviceCounts(round)].map(([resource, count]) => [resource, `${count}`])),
      kubeletConfig: kubeletConfigOf('the round', {
        kind: 'KubeletConfiguration',
        ...kubeletSettings(round, version),
      }),
      kubeletConfigProblems: [],
      view: {
        ...UNKNOWN_VIEW,
        policy: 'static',
        reserved: CpuSet.parse(round.reserved),
        free: CpuSet.parse(snapshot.defaultSet),
        assignments: owned.map((assignment) => ({ ...assignment, name: undefined })),
        devices: countDevices(allocatableDevices(round), devicesOfPods(deviceCheckpoint(snapshot), [], podsWithCpus)),
        memory: readMemoryState(memoryCheckpoint(node, snapshot), listedMemory(snapshot, pods), podsWithCpus),
      },
      networks: UNKNOWN_NETWORKS,
    },
    undefined,
    '2026-01-01T00:00:00Z',
  );
  if (status === undefined) throw new Error('the agent would publish no report');
  return reportOfStatus(status, new Map());
}

/** The kubelet lists a device once for each of its NUMA nodes. */
function allocatableDevices(round: Round): ListedDevices[] {
  return resourcesOf(round).flatMap(({ name, devices }) =>
    devices.flatMap(({ id, nodes }) => {
      const device = { resourceName: name, deviceIds: [id] };
      return nodes === undefined ? [device] : nodes.map((ID) => ({ ...device, topology: { nodes: [{ ID }] } }));
    }),
  );
}

function listedContainers({ spec }: DrawnPod): string[] {
  const restartable = spec.initContainers.filter(({ restartPolicy }) => restartPolicy === 'Always');
  return [...restartable, ...spec.containers].map(({ name }) => name);
}

function deviceCheckpoint({ devices }: Snapshot): string {
  const entries = Object.entries(devices).flatMap(([PodUID, containers]) =>
    Object.entries(containers).flatMap(([ContainerName, resources]) =>
      Object.entries(resources).map(([ResourceName, ids]) => {
        return { PodUID, ContainerName, ResourceName, DeviceIDs: { '-1': ids } };
      }),
    ),
  );
  return JSON.stringify({ Data: { PodDeviceEntries: entries } });
}

function memoryCheckpoint({ host, memory, round }: RecordedNode, snapshot: Snapshot): string {
  if (snapshot.memory === undefined) return JSON.stringify({ policyName: 'None', machineState: {} });
  const ids = host.cells.map(({ id }) => id);
  const empty = initialMemory(ids, memoryCells(memory, round)).cells;
  const machineState = Object.entries(snapshot.memory.cells).map(([id, { blocks, group, free }]) => {
    const tables = [...(empty[ids.indexOf(Number(id))]?.tables ?? [])].map(([type, { allocatable }]) => {
      const remaining = free[type] ?? 0;
      return [type, { allocatable, reserved: allocatable - remaining, free: remaining }];
    });
    const memoryMap = Object.fromEntries(tables);
    return [id, { numberOfAssignments: blocks, memoryMap, cells: CpuSet.parse(group).toArray() }];
  });
  const entries = Object.entries(snapshot.memory.blocks).map(([pod, containers]) => {
    const ofContainers = Object.entries(containers).map(([name, blocks]) => [
      name,
      Object.entries(blocks).map(([type, text]) => ({ type, ...blockOf(text) })),
    ]);
    return [pod, Object.fromEntries(ofContainers)];
  });
  return JSON.stringify({
    policyName: 'Static',
    machineState: Object.fromEntries(machineState),
    entries: Object.fromEntries(entries),
  });
}

function memoryCells(memory: RecordedNode['memory'], { reservedMemory = [] }: Round): readonly CellMemory[] {
  return (memory?.cells ?? []).map((cell) => {
    return { ...cell, reserved: { memory: (reservedMemory[cell.id] ?? 0) * 2 ** 20 } };
  });
}

function listedMemory({ memory }: Snapshot, pods: RunningPods): PodResources[] {
  return [...pods].map(([pod, spec]) => {
    const containers = listedContainers(spec).map((name) => ({
      name,
      memory: Object.entries(memory?.blocks[pod]?.[name] ?? {}).map(([memoryType, text]) => {
        const { numaAffinity, size } = blockOf(text);
        return { memoryType, size, topology: { nodes: numaAffinity.map((ID) => ({ ID })) } };
      }),
    }));
    return podResourcesOf({ containers });
  });
}

function blockOf(text: string): { readonly numaAffinity: readonly number[]; readonly size: number } {
  const [nodes = '', size = ''] = text.split(': ');
  return { numaAffinity: CpuSet.parse(nodes).toArray(), size: Number(size) };
}

type Assignment = HostReport['assignments'][number];

function byPodAndContainer(a: Assignment, b: Assignment): number {
  const [left, right] = [`${a.podUID} ${a.container}`, `${b.podUID} ${b.container}`];
  if (left === right) return 0;
  return left < right ? -1 : 1;
}

export function emptySnapshot({ host, memory, round }: RecordedNode): Snapshot {
  const defaultSet = CpuSet.of(host.cells.flatMap(({ cpus }) => CpuSet.parse(cpus).toArray()));
  const state =
    round.reservedMemory &&
    initialMemory(
      host.cells.map(({ id }) => id),
      memoryCells(memory, round),
    );
  return snapshotOf({ defaultSet, assignments: new Map(), pools: new Map(), devices: new Map(), memory: state });
}
