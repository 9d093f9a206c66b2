import assert from 'node:assert/strict';
import type { HostReport } from '../../model/kubelet/host-report.ts';
import { podRequestOf } from '../../model/kubelet/pod-request.ts';
import type { PlacementNeeds } from '../../model/placement/needs.ts';
import { preparedHost, withFreeResources, withoutPods } from '../../model/placement/needs.ts';
import { judgeHost } from '../../model/placement/verdict.ts';
import { container, pod } from './kubelet/fixture.ts';

const VF = 'openshift.io/sriov_vf';
const GPU = 'nvidia.com/gpu';
const GIB = 2 ** 30;

/** Two NUMA nodes of 32 CPUs, cores of two threads; CPUs 0 and 32 are reserved. */
const REPORT: HostReport = {
  kubeletVersion: 'v1.36.2',
  cells: [
    { id: 0, cpus: '0-15,32-47' },
    { id: 1, cpus: '16-31,48-63' },
  ],
  cores: Array.from({ length: 32 }, (_, core) => `${core},${core + 32}`),
  reserved: '0,32',
  cpuManager: { policy: 'static', options: { 'full-pcpus-only': 'true' } },
  topologyManager: { policy: 'single-numa-node', scope: 'container' },
  assignments: [],
  devices: [],
};

type Groups = NonNullable<HostReport['devices']>[number]['groups'];

const owned = (cpus: string, podUID = 'b') => ({ podUID, container: 'compute', cpus });
const vfs = (...groups: Groups) => [{ resource: VF, groups }];
const vfOn = (cells: string, free: number, total = 8) => ({ cells, total, free });

function needs(uid: string, cpus: number, amounts: Record<string, string> = {}, init = 0): PlacementNeeds {
  const initContainers = init > 0 ? [container('init', init)] : [];
  return { request: podRequestOf(pod(uid, [container('compute', cpus, amounts)], initContainers)), networks: [] };
}
const withVf = (uid: string, cpus = 8, count = 1) => needs(uid, cpus, { [VF]: `${count}` });

/** The CPUs of a pod on the node, or the refusal without the kubelet's own message. */
function verdictText(podNeeds: PlacementNeeds, report: Partial<HostReport>, assumed: readonly PlacementNeeds[] = []) {
  const verdict = judgeHost(podNeeds, preparedHost({ ...REPORT, ...report }), assumed, 'count-check');
  if (!verdict.fits) return `${verdict.kind}: ${verdict.detail.replace(/; the kubelet would answer: .+$/, '')}`;
  return [`${verdict.cpus ?? 'by count'}`, ...verdict.warnings].join('; ');
}

const FIRST_ON_1 = '16-19,48-51';
const FIRST_ON_0 = '1-4,33-36';

type Row = [
  what: string,
  needs: PlacementNeeds,
  report: Partial<HostReport>,
  verdict: string,
  inFlight?: PlacementNeeds[],
];
const rowsOf = (rows: readonly Row[]) => {
  for (const [what, podNeeds, report, expected, inFlight] of rows)
    it(`decide: ${what}`, () => assert.equal(verdictText(podNeeds, report, inFlight), expected));
};
const BUSY_1 = [owned('16-31,48-63')];
const NEAR = 'no-common-node: 8 CPUs needed near each other; free by NUMA node: 0: 30, 1: 32';
const ONE_ORDER = 'in-flight: it fits only if the kubelet admits it before some of 1 pod in flight';

describe('devices of a report', () => {
  const busy = (groups: Groups[number]) => ({ devices: vfs(groups), assignments: BUSY_1 });
  const gpus = { resource: GPU, groups: [vfOn('0', 1)] };
  const unhealthy = [{ resource: VF, groups: [vfOn('0', 8), vfOn('1', 7, 7)], unhealthy: 1 }];
  const notPredicted = `by count; not predicted: the`;
  rowsOf([
    [
      'a VF where all CPUs are owned',
      withVf('a'),
      busy(vfOn('1', 8)),
      `no-common-node: ${VF}: free on NUMA node 1 only; its CPUs are owned`,
    ],
    ['devices without topology', withVf('a'), busy({ total: 8, free: 8 }), FIRST_ON_0],
    [
      'two resources on different NUMA nodes',
      needs('a', 8, { [VF]: '1', [GPU]: '1' }),
      { devices: [gpus, ...vfs(vfOn('1', 8))] },
      NEAR,
    ],
    ['a resource of DRA', withVf('a'), { devices: [{ resource: VF, groups: [], dra: true }] }, FIRST_ON_0],
    [
      'unhealthy devices of an unknown one',
      withVf('a'),
      { devices: unhealthy },
      `${notPredicted} NUMA nodes of unhealthy devices of ${VF} are not reported`,
    ],
    [
      'a report without devices',
      withVf('a'),
      { devices: undefined },
      `${notPredicted} devices of ${VF} are not reported`,
    ],
  ]);

  it('are too many to prepare above 16,384', () => {
    const groups = Array.from({ length: 17 }, (_, id) => vfOn(`${id}`, 1024, 5000));
    assert.throws(() => preparedHost({ ...REPORT, devices: vfs(...groups) }), /more than 16384 devices/);
  });

  it('of pods that end are only free if all are: a report does not name their pods', () => {
    const host = preparedHost({ ...REPORT, ...busy(vfOn('1', 0)) });
    const after = withoutPods(host, new Set(['b']));
    assert.equal(judgeHost(withVf('a'), after, [], 'refuse').fits, false);
    assert.equal(judgeHost(withVf('a'), withFreeResources(after), [], 'refuse').fits, true);
  });
});

describe('devices of pods in flight', () => {
  const on1 = { devices: vfs(vfOn('1', 8)), assignments: [owned('28-31,60-63')] };
  const either = { devices: vfs(vfOn('0', 1, 1), vfOn('0-1', 1, 1)) };
  rowsOf([
    ['the third VF of three', withVf('a'), on1, '24-27,56-59', [withVf('p'), withVf('q')]],
    [
      'a pod without VFs could take their CPUs first',
      needs('a', 26),
      { devices: vfs(vfOn('0', 8)) },
      ONE_ORDER,
      [withVf('p')],
    ],
    ['a VF that the kubelet may choose on either NUMA node', withVf('a'), either, ONE_ORDER, [withVf('p')]],
  ]);
});

describe('memory and feature gates of a report', () => {
  const cell = (id: number, freeGib: number, blocks = 0, group = `${id}`) => ({
    id,
    memory: 64 * GIB,
    hugePages: { 'hugepages-1Gi': 8 * GIB },
    state: { blocks, group, free: { memory: 56 * GIB, 'hugepages-1Gi': freeGib * GIB } },
  });
  const memory = (...cells: ReturnType<typeof cell>[]) => ({ memoryManager: { policy: 'Static', cells } });
  const paged = (uid: string) => needs(uid, 8, { 'hugepages-1Gi': '6Gi' });
  const { state: _, ...stateless } = cell(0, 8);
  const older = { memoryManager: { policy: 'Static', cells: [stateless, { ...stateless, id: 1 }] } };
  const withFree = (of: ReturnType<typeof cell>, gib: number) => ({ ...of, freePages: { 'hugepages-1Gi': gib * GIB } });
  const uncounted = (...gib: number[]) => {
    const cells = gib.map((free, id) => ({ ...withFree(cell(id, 0), free), state: undefined }));
    return { memoryManager: { policy: 'None', cells } };
  };
  const taken = (node: number) =>
    `pages-taken: 4 GiB of 1Gi pages on NUMA node ${node} are taken by processes that did not reserve them`;
  const short = (free: number, needed: number) =>
    `pages-taken: ${free} GiB of 1Gi pages are free by the kernel, and ${needed} GiB are needed`;
  const grouped = memory(cell(0, 8, 1, '0-1'), cell(1, 8, 1, '0-1'));
  const onlyOn0 = (of: ReturnType<typeof cell>) => ({ ...memory(of, cell(1, 8)), assignments: BUSY_1 });
  rowsOf([
    ['pages that only the kubelet has', paged('a'), onlyOn0(withFree(cell(0, 8), 4)), taken(0)],
    [
      'pages that the kernel does not have, and that are left',
      paged('a'),
      memory(withFree(cell(0, 8), 6), cell(1, 8)),
      FIRST_ON_0,
    ],
    [
      'pages that are taken where a pod in flight and this one may be',
      paged('a'),
      memory(cell(0, 8), withFree(cell(1, 8), 4)),
      taken(1),
      [paged('p')],
    ],
    [
      'pages taken where a pod without pages goes',
      needs('a', 8),
      memory(withFree(cell(0, 8), 0), cell(1, 8)),
      FIRST_ON_0,
    ],
    ['pages that no kubelet counts', paged('a'), uncounted(4, 4), FIRST_ON_0],
    ['too few pages that no kubelet counts', paged('a'), uncounted(4, 1), short(5, 6)],
    ['the same for it and a pod in flight', paged('a'), uncounted(4, 4), short(8, 12), [paged('p')]],
    [
      'the CPUs of the other one in use',
      paged('a'),
      onlyOn0(cell(0, 2, 1)),
      'no-common-node: hugepages-1Gi: 6 GiB needed, 2 GiB free on NUMA node 0',
    ],
    ['pages of a pod in flight', paged('a'), memory(cell(0, 8), cell(1, 8)), FIRST_ON_1, [paged('p')]],
    ['a group of NUMA nodes', needs('a', 8), grouped, NEAR],
    [
      'a report without the state',
      needs('a', 8),
      older,
      'by count; not predicted: the state of the memory manager is not reported',
    ],
    ['a gate that is on', needs('a', 8), { featureGates: { PodLevelResourceManagers: true } }, 'by count'],
  ]);
});

describe('an init container', () => {
  it('that gets a CPU of a full NUMA node', () => {
    const report: Partial<HostReport> = {
      reserved: '1,3',
      cpuManager: { policy: 'static', options: {} },
      assignments: [owned('0,2,4-14,32,34,36-46', 'e'), owned('33', 'f')],
    };
    const podNeeds = needs('a', 26, {}, 1);
    const text =
      'tied-by-init: init container init: it gets 1 CPU of NUMA node 0, which container compute reuses, so 26 CPUs are needed there; 3 free';
    assert.equal(verdictText(podNeeds, report), text);
    const verdict = judgeHost(podNeeds, preparedHost({ ...REPORT, ...report }), [], 'refuse');
    assert.equal(verdict.fits ? undefined : verdict.missing, 23);
  });
});
