import assert from 'node:assert/strict';
import { type NodeTopologyStatus, nodeTopologyStatus } from '../../../kube/node-topology.ts';
import { CpuSet } from '../../../model/cpu-set.ts';
import { preparedHost } from '../../../model/placement/needs.ts';
import type { NetworksView } from '../../../node-agent/networks/combine.ts';
import { buildStatus, type ReportInputs } from '../../../node-agent/report/status.ts';
import { config, inputs, knownView, networks, runWith } from './inputs-fixture.ts';

const NOW = '2026-01-01T00:00:00Z';
const build = (more: Partial<ReportInputs> = {}, before?: NodeTopologyStatus) => {
  const status = buildStatus({ ...inputs, ...more }, before, NOW);
  assert.ok(status);
  return status;
};
const part = (status: NodeTopologyStatus) => {
  const { conditions: _, ...rest } = status;
  return rest;
};
const NOTHING = [undefined, undefined, undefined];
const NO_POLICY = { ...config, cpuManager: { policy: 'none', options: {} } };
const memoryStates = (status: NodeTopologyStatus) => status.memoryManager?.cells?.map(({ state }) => state);
const messageOf = (type: string, status: NodeTopologyStatus) =>
  status.conditions?.find((condition) => condition.type === type)?.message;

describe('the fields of a report', () => {
  /** The common fields of all reports of the fixture. */
  const BASE = {
    kubeletVersion: 'v1.36.0',
    cells: [{ id: 0, cpus: '0-3' }],
    cores: ['0', '1', '2', '3'],
    reserved: '0',
    cpuManager: { policy: 'static' },
    distances: { 0: [10] },
    assignments: [
      { podUID: 'u', namespace: 'ns', podName: 'vm', container: 'compute', cpus: '1-2' },
      { podUID: 'v', container: 'compute', cpus: '4' },
    ],
    physnets: [{ name: 'physnet0', cells: '' }],
    tunnel: { cells: '0-1' },
    summary: { cpus: 4, free: 1, networks: 'physnet0,tunnel', reported: NOW },
  };

  it('are absent if there is no value', () => {
    assert.deepEqual(part(build()), BASE);
    const kubelet = 'AssignmentsKnown KubeletRunKnown KubeletSeesHost !KubeletConfigKnown';
    const others = 'UplinksUp NetworksPolledNear OpenVswitchInPlace StateSaved ClockAgrees DutiesRunning';
    const conditions = build().conditions?.map(({ type, status }) => (status === 'True' ? type : `!${type}`));
    assert.equal(conditions?.join(' '), `${kubelet} NetworksKnown NetworkMapValid NetworkMapAgrees ${others}`);
    const { kubeletVersion: _v, distances: _d, tunnel: _t, ...least } = BASE;
    const bare = build({
      kubeletVersion: undefined,
      run: runWith({ memory: { cells: [], distances: undefined } }),
      networks: { ...networks, networks: { ...networks.networks, tunnel: undefined } },
    });
    assert.deepEqual(part(bare), { ...least, summary: { ...BASE.summary, networks: 'physnet0' } });
  });

  it('have their own values in a complete report', () => {
    const pinning = [{ podUID: 'u', namespace: 'n', podName: 'p', state: 'pinned', vcpus: 2 }] as const;
    const refusals = [{ namespace: 'n', podName: 'p', container: 'c', message: 'm' }];
    const shared = { sockets: [{ id: 1, cpus: '0-3' }], uncores: [{ id: 2, cpus: '0-3' }] };
    const full = build({
      run: runWith({ description: { ...inputs.run.facts.description, ...shared }, isolated: CpuSet.parse('2') }),
      pmdCpus: CpuSet.parse('3'),
      pinsVms: false,
      pinning,
      refusals,
      kubeletConfig: config,
      view: { ...knownView, claims: [{ uid: 'claim', cpus: CpuSet.parse('3'), name: { namespace: 'n', name: 'c' } }] },
    });
    assert.deepEqual(nodeTopologyStatus.parse(full), full);
    assert.equal(preparedHost(build()).host.online.size, 4, 'the extender takes it');
    assert.deepEqual(part(full), {
      ...BASE,
      ...shared,
      cpuManager: { policy: 'static', options: { a: 'b' } },
      topologyManager: { policy: 'restricted', scope: 'pod', options: { c: 'd' } },
      memoryManager: {
        policy: 'Static',
        cells: [{ id: 0, memory: 2 ** 33, hugePages: { 'hugepages-2Mi': 2 ** 21 }, reserved: { memory: 7 } }],
      },
      featureGates: {},
      isolated: '2',
      pmdCPUs: '3',
      pinsVMs: false,
      pinning: [...pinning],
      refusals,
      claims: [{ uid: 'claim', namespace: 'n', name: 'c', cpus: '3' }],
    });
  });

  const groupOf = (cells: string, free: number) => ({ cells, total: 4, free });
  const VF = { resource: 'a/vf', groups: [groupOf('0', 1), groupOf('1', 4)] };
  it('wait for the devices of a new pod, the owners of CPUs and the networks', () => {
    for (const missing of ['free', 'reserved', 'policy'] as const) {
      const view = { ...knownView, [missing]: undefined };
      assert.equal(buildStatus({ ...inputs, view }, undefined, NOW), undefined, missing);
    }
    assert.equal(buildStatus({ ...inputs, networks: undefined }, undefined, NOW), undefined);
    assert.equal(buildStatus({ ...inputs, view: { ...knownView, isAnswerPending: true } }, undefined, NOW), undefined);
  });

  for (const [what, devices, capacity, expected] of [
    ['list devices that the Node has', [VF], { 'a/vf': '8' }, [VF]],
    ['count devices that are not healthy', [VF], { 'a/vf': '11' }, [{ ...VF, unhealthy: 3 }]],
    ['read the quantity of a Node', [VF], { 'a/vf': '1k' }, [{ ...VF, unhealthy: 992 }]],
    ['have no devices before the kubelet has answered', undefined, { 'a/vf': '8' }, undefined],
    ['have no devices while the Node has fewer', [VF], { 'a/vf': '7' }, undefined],
    ['have no devices while the Node does not have the resource', [VF], {}, undefined],
  ] as const) {
    it(what, () => {
      const list = devices?.map(({ resource, groups }) => ({ resource, groups: [...groups] }));
      assert.deepEqual(build({ view: { ...knownView, devices: list }, capacity }).devices, expected);
    });
  }

  const NO_STATE = 'memory_manager_state has no state of NUMA node 0 under policy Static';
  const state = { blocks: 1, group: '0', free: { memory: 5 } };
  const readings: [string, NonNullable<ReportInputs['view']['memory']> | undefined, object | undefined, string][] = [
    ['is that of the kubelet', { cells: new Map([[0, state]]) }, state, ''],
    ['is absent, with the reason, if its file is torn', { cells: new Map(), problem: 'torn' }, undefined, 'torn'],
    ['is absent before the kubelet has answered', undefined, undefined, 'the kubelet has not answered'],
    ['is absent while the file is of policy None', { cells: new Map() }, undefined, NO_STATE],
  ];
  for (const [what, memory, expected, message] of readings) {
    it(`the state of the static memory manager ${what}`, () => {
      const status = build({ kubeletConfig: config, view: { ...knownView, memory } });
      assert.deepEqual(memoryStates(status), [expected]);
      assert.equal(messageOf('MemoryStateKnown', status), message);
    });
  }

  it('has a gate that the kubelet declares, whatever its configuration says, under the static CPU manager', () => {
    const declaredFeatures = ['Another', 'GuaranteedQoSPodCPUResize'];
    const gatesUnder = (policy: string) => {
      const kubeletConfig = { ...config, cpuManager: { policy, options: {} } };
      return build({ kubeletConfig, declaredFeatures, view: { ...knownView, policy } }).featureGates;
    };
    assert.deepEqual(gatesUnder('static'), { InPlacePodVerticalScalingExclusiveCPUs: true });
    assert.deepEqual(gatesUnder('none'), {});
  });

  it('names the huge pages that are free by the kubelet and not by the kernel', () => {
    const free = { memory: 5, 'hugepages-2Mi': 2 ** 21 };
    const view = { ...knownView, memory: { cells: new Map([[0, { ...state, free }]]) } };
    const kernel = (count: number) => ({
      online: CpuSet.parse('0-3'),
      pages: new Map<string, number>(),
      freePages: new Map([['node0/hugepages/hugepages-2048kB', count]]),
    });
    const taken = build({ kubeletConfig: config, view, kernel: kernel(0) });
    assert.deepEqual(taken.memoryManager?.cells?.[0]?.freePages, { 'hugepages-2Mi': 0 });
    const text = '2 MiB of 2Mi pages on NUMA node 0 are taken by processes that did not reserve them';
    assert.equal(messageOf('HugePagesFree', taken), text);
    assert.equal(messageOf('HugePagesFree', build({ kubeletConfig: config, view, kernel: kernel(1) })), '');
  });

  it('have no state of memory under policy None, and the set feature gates', () => {
    const featureGates = { PodLevelResourceManagers: true };
    const kubeletConfig = { ...config, memoryManager: { policy: 'None' }, featureGates };
    const status = build({ kubeletConfig, view: { ...knownView, memory: { cells: new Map([[0, state]]) } } });
    assert.deepEqual(memoryStates(status), [undefined]);
    assert.equal(messageOf('MemoryStateKnown', status), undefined);
    assert.deepEqual(status.featureGates, featureGates);
  });

  it('list physnets by name, in any order of discovery', () => {
    const physnets = new Map(['b', 'a'].map((name) => [name, CpuSet.EMPTY]));
    const status = build({ networks: { ...networks, networks: { tunnel: undefined, physnets } } });
    assert.deepEqual(status.summary?.networks, 'a,b');
  });

  it('have nothing of the configuration while it is unknown or not that of the running kubelet', () => {
    const before = build({ kubeletConfig: config });
    for (const kubeletConfig of [undefined, NO_POLICY]) {
      const { cpuManager, topologyManager, memoryManager, featureGates } = build({ kubeletConfig }, before);
      assert.deepEqual([cpuManager, topologyManager, memoryManager, featureGates], [{ policy: 'static' }, ...NOTHING]);
    }
  });
});

describe('the kubelet’s configuration in a report', () => {
  const reserving = (cpus: string, base = config) => ({ ...base, reserved: CpuSet.parse(cpus) });
  const says = (text: string) => `config.yaml says ${text}`;
  // The kubelet's policy, and what is wrong.
  const cases: [string, ReportInputs['kubeletConfig'], policy: string, message: string][] = [
    ['none', undefined, 'static', 'config.yaml does not exist'],
    ['matches the running kubelet', config, 'static', ''],
    ['has the same reserved CPUs', reserving('0'), 'static', ''],
    ['has another policy', NO_POLICY, 'static', says('cpuManagerPolicy none, but the kubelet runs with static')],
    ['has other reserved CPUs', reserving('0-1'), 'static', says('reservedSystemCPUs 0-1, but the kubelet reserves 0')],
    ['has reserved CPUs that no policy uses', reserving('0-1', NO_POLICY), 'none', ''],
  ];
  for (const [name, kubeletConfig, policy, message] of cases) {
    it(name, () => {
      const status = build({ kubeletConfig, view: { ...knownView, policy } });
      assert.equal(messageOf('KubeletConfigKnown', status), message);
    });
  }
});

describe('networks and duties in a report', () => {
  const viewWith = (more: Partial<NetworksView>) => ({ networks: { ...networks, ...more } });
  const problems = [
    { reason: 'NotFound', message: 'a' },
    { reason: 'InvalidName', message: 'b' },
  ] as const;
  const NO_CARRIER = 'none of its uplinks has a carrier';
  const down = new Set(['a', undefined]);
  const FAILED = "the duty x failed and restarts; see the agent's log";
  const doubts: [string, Partial<ReportInputs>, string, string, string][] = [
    ['all problems of networks, with the first reason', viewWith({ problems }), 'NetworksKnown', 'NotFound', 'a; b'],
    ['a typo in the map', viewWith({ mapFault: 'NUMA node 7' }), 'NetworkMapValid', 'InvalidMap', 'NUMA node 7'],
    ['drift', viewWith({ drift: ['physnet a: …'] }), 'NetworkMapAgrees', 'Drift', 'physnet a: …'],
    ['no carrier', viewWith({ down }), 'UplinksUp', 'NoCarrier', `physnet a: ${NO_CARRIER}; the tunnel: ${NO_CARRIER}`],
    ['no PMD near', viewWith({ unpolled: ['a far'] }), 'NetworksPolledNear', 'NoPollingCPU', 'a far'],
    ['a second writer of the masks', { ovsProblems: ['another'] }, 'OpenVswitchInPlace', 'Incomplete', 'another'],
    ['a switch that hangs', { ovsSilence: ['no answer'] }, 'OpenVswitchAnswers', 'NoAnswer', 'no answer'],
    ['a full disk', { unsaved: ['/s: ENOSPC'] }, 'StateSaved', 'FileUnusable', '/s: ENOSPC'],
    ['another time', { clockProblems: ['2 h behind'] }, 'ClockAgrees', 'ClockDiffers', '2 h behind'],
    ['a failed duty', { failedDuties: ['x'] }, 'DutiesRunning', 'Failed', FAILED],
  ];
  for (const [label, change, type, reason, message] of doubts) {
    it(`have a condition: ${label}`, () => {
      const condition = build(change).conditions?.find((condition) => condition.type === type);
      assert.deepEqual(condition, { type, status: 'False', reason, message, lastTransitionTime: NOW });
    });
  }

  it('have the kubelet’s own counts, and a condition, where its cores are not those of the kernel', () => {
    const counts = { cpus: 6, sockets: 1 };
    const contradictions = ['the kubelet takes CPUs 0,2 for one core each', 'it counts 2 CPUs for each core'];
    const description = { ...inputs.run.facts.description, counts };
    const status = build({ run: runWith({ description, contradictions }) });
    assert.deepEqual(status.counts, counts);
    assert.equal(messageOf('KubeletTopologyAgrees', status), contradictions.join('; '));
    assert.equal(messageOf('KubeletTopologyAgrees', build()), undefined);
  });

  it('have conditions that keep their own time while their status is the same', () => {
    const before = build({ networks: { ...networks, drift: ['x'] } });
    const at = (more: Partial<ReportInputs>) =>
      buildStatus({ ...inputs, ...more }, before, 'later')?.conditions?.find(({ type }) => type === 'NetworkMapAgrees')
        ?.lastTransitionTime;
    assert.equal(at({ networks: { ...networks, drift: ['y'] } }), NOW);
    assert.equal(at({}), 'later');
  });
});
