import assert from 'node:assert/strict';
import fc from 'fast-check';
import { CpuSet } from '../../model/cpu-set.ts';
import type { Admission } from '../../model/kubelet/admission.ts';
import type { HostReport } from '../../model/kubelet/host-report.ts';
import type { Kubelet } from '../../model/kubelet/kubelet.ts';
import type { PodRequest } from '../../model/kubelet/pod-request.ts';
import { kubeletOfReport, stateOfReport } from '../../model/kubelet/report.ts';
import type { KubeletState } from '../../model/kubelet/state.ts';
import { numaNodes } from '../../model/kubelet/topology.ts';
import { reportWithoutPods, usageOf } from '../../model/kubelet/usage.ts';

const GIB = 2 ** 30;
const PAGES = 'hugepages-1Gi';
const RESOURCES = ['a.example/vf', 'b.example/gpu'];

const group = fc.record({
  cells: fc.option(fc.constantFrom('0', '1', '2', '0-1', '1-2'), { nil: undefined }),
  total: fc.nat(4),
});
const machines = fc.record({
  cells: fc.constantFrom(2, 3),
  policy: fc.constantFrom('none', 'best-effort', 'restricted', 'single-numa-node'),
  scope: fc.constantFrom('container', 'pod'),
  version: fc.constantFrom('v1.35.0', 'v1.36.0'),
  isMemoryStatic: fc.boolean(),
  groups: fc.array(fc.uniqueArray(group, { selector: ({ cells }) => cells, maxLength: 3 }), {
    minLength: 2,
    maxLength: 2,
  }),
});
const containers = fc.record({
  cpus: fc.nat(6),
  devices: fc.tuple(fc.nat(2), fc.nat(2)),
  gib: fc.integer({ min: 1, max: 3 }),
  pages: fc.nat(2),
  isInit: fc.boolean(),
});
const steps = fc.array(
  fc.record({
    containers: fc.array(containers, { minLength: 1, maxLength: 3 }),
    removed: fc.option(fc.nat(4), { nil: undefined }),
  }),
  { minLength: 2, maxLength: 7 },
);
type Machine = typeof machines extends fc.Arbitrary<infer T> ? T : never;
type Step = typeof steps extends fc.Arbitrary<(infer T)[]> ? T : never;

function emptyReport({ cells: count, policy, scope, version, isMemoryStatic, groups }: Machine): HostReport {
  const ids = Array.from({ length: count }, (_, id) => id);
  const cells = ids.map((id) => ({
    id,
    memory: 6 * GIB,
    hugePages: { [PAGES]: 2 * GIB },
    state: { blocks: 0, group: `${id}`, free: { memory: 4 * GIB, [PAGES]: 2 * GIB } },
  }));
  return {
    kubeletVersion: version,
    cells: ids.map((id) => ({ id, cpus: `${id * 8}-${id * 8 + 7}` })),
    cores: Array.from({ length: count * 4 }, (_, core) => `${core * 2}-${core * 2 + 1}`),
    reserved: '0',
    cpuManager: { policy: 'static', options: {} },
    topologyManager: { policy, scope },
    memoryManager: { policy: isMemoryStatic ? 'Static' : 'None', cells },
    assignments: [],
    devices: RESOURCES.map((resource, i) => ({
      resource,
      groups: (groups[i] ?? []).map((entry) => ({ ...entry, free: entry.total })),
    })),
  };
}

function requestOf(uid: string, step: Step, isMemoryStatic: boolean): PodRequest {
  const ordered = [...step.containers].sort((a, b) => Number(b.isInit) - Number(a.isInit));
  return {
    uid,
    guaranteed: true,
    containers: ordered.map(({ cpus, devices, gib, pages, isInit }, index) => {
      const present = (amounts: [string, number][]) => new Map(amounts.filter(([, amount]) => amount > 0));
      const memory = isMemoryStatic ? { memory: gib * GIB, [PAGES]: pages * GIB } : {};
      return {
        name: `c${index}`,
        kind: isInit ? 'init' : 'app',
        cpus,
        devices: present(RESOURCES.map((name, i) => [name, devices[i] ?? 0])),
        memory: present(Object.entries(memory)),
      };
    }),
  };
}

/** What an agent reports about a kubelet in this state. */
function reportOf(empty: HostReport, { topology }: Kubelet, state: KubeletState): HostReport {
  const used = [...state.devices.values()].flatMap((pod) => [...pod.values()]);
  return {
    ...empty,
    assignments: [...state.assignments].flatMap(([podUID, pod]) =>
      [...pod].map(([container, cpus]) => ({ podUID, container, cpus: `${cpus}` })),
    ),
    devices: empty.devices?.map(({ resource, groups }) => ({
      resource,
      groups: groups.map((entry, index) => {
        const ids = new Set(used.flatMap((resources) => [...(resources.get(resource) ?? [])]));
        const ofGroup = [...ids].filter((id) => id.startsWith(`${index}.`));
        return { ...entry, free: entry.total - ofGroup.length };
      }),
    })),
    memoryManager: empty.memoryManager && {
      ...empty.memoryManager,
      cells: empty.memoryManager.cells?.map((cell, bit) => {
        const inState = state.memory?.cells[bit];
        if (inState === undefined) return cell;
        const free = Object.fromEntries([...inState.tables].map(([type, table]) => [type, table.free]));
        const nodes = CpuSet.of(numaNodes(topology, inState.group));
        return { ...cell, state: { blocks: inState.blocks, group: `${nodes}`, free } };
      }),
    },
  };
}

/** CPUs, hints and the groups of devices; which of the equal devices is not predicted. */
function answerOf(admission: Admission): unknown {
  if (!admission.admitted) return `${admission.reason}: ${admission.message}`;
  return admission.containers.map(({ cpus, hint, devices }) => [
    `${cpus}`,
    hint,
    [...devices].map(([resource, ids]) => [resource, [...ids].map((id) => id.split('.')[0]).sort()]),
  ]);
}

describe('model/kubelet: the state of a report', () => {
  it('decides as the full state does: 2,000 random machines with devices and memory in use', function () {
    this.timeout(300_000);
    const counts = { admitted: 0, refused: 0, 'with devices in use': 0, 'with memory in use': 0 };
    fc.assert(
      fc.property(machines, steps, (machine, sequence) => {
        const empty = emptyReport(machine);
        const kubelet = kubeletOfReport(empty);
        assert.ok(!('unpredictable' in kubelet));
        let state = stateOfReport(kubelet, empty);
        const present: string[] = [];
        sequence.forEach((step, index) => {
          const [removed] =
            step.removed === undefined ? [] : present.splice(step.removed % Math.max(1, present.length), 1);
          if (removed !== undefined) state = kubelet.remove(state, removed);
          const report = reportOf(empty, kubelet, state);
          const shapes = [report, empty].map((one) => JSON.stringify(reportWithoutPods(one)));
          assert.equal(shapes[0], shapes[1], 'nodes of the same model');
          if (report.devices?.some(({ groups }) => groups.some(({ free, total }) => free < total)))
            counts['with devices in use']++;
          if (usageOf(report).includes('blocks')) counts['with memory in use']++;
          const request = requestOf(`pod${index}`, step, machine.isMemoryStatic);
          const full = kubelet.admit(state, request);
          assert.deepEqual(answerOf(kubelet.admit(stateOfReport(kubelet, report), request)), answerOf(full));
          counts[full.admitted ? 'admitted' : 'refused']++;
          state = full.state;
          if (full.admitted) present.push(request.uid);
        });
      }),
      { numRuns: 2000 },
    );
    for (const [what, count] of Object.entries(counts)) assert.ok(count > 200, `${what}: ${count}`);
  });
});
