import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { CpuSet } from '../../../model/cpu-set.ts';
import { createHost } from '../../../model/host.ts';
import { createKubelet, type KubeletConfig } from '../../../model/kubelet/kubelet.ts';
import { readCpuOptions } from '../../../model/kubelet/options.ts';
import { behaviourOf, CHANGES, GATES, nearestBehaviour, unpredictedGates } from '../../../model/kubelet/versions.ts';
import { simpleHost } from './fixture.ts';

const MANY = { 'max-allowable-numa-nodes': '64' };
const MEMORY_OF_34 = Array.from({ length: 34 }, (_, id) => ({ id, memory: 2 ** 30 }));
describe('a configuration that is not predicted is reported with the reason', () => {
  const base: KubeletConfig = {
    version: 'v1.36.0',
    host: simpleHost(2, 4),
    cpuManager: { policy: 'static' },
    reserved: CpuSet.of([0]),
  };
  const cpu = (options: Record<string, string>): Partial<KubeletConfig> => ({
    cpuManager: { policy: 'static', options },
  });
  const cases: readonly [string, Partial<KubeletConfig>, RegExp][] = [
    ['an old version', { version: 'v1.32.13' }, /^kubelet v1\.32\.13 is not predicted, only 1\.33 to 1\.38-alpha$/],
    ['no version, even as the nearest', { version: 'unknown', nearest: true }, /kubelet unknown is not predicted/],
    [
      'an option whose change was not read',
      { ...cpu({ 'distribute-cpus-across-cores': 'true' }), version: 'v1.38.0-alpha.1' },
      /^from 1\.38 on, distribute-cpus-across-cores takes one CPU .*, by the description of kubernetes #140766 alone$/,
    ],
    [
      'memory of pods whose change was not read',
      {
        version: 'v1.38.0-alpha.1',
        topologyManager: { policy: 'restricted', scope: 'pod' },
        memoryManager: { policy: 'Static', cells: [] },
      },
      /^from 1\.38 on, after a restart, the pod-scope hint/,
    ],
    [
      'resizes of exclusive CPUs',
      { featureGates: { InPlacePodVerticalScalingExclusiveCPUs: true } },
      /^the feature gate InPlacePodVerticalScalingExclusiveCPUs is on; resizes of exclusive CPUs are not predicted$/,
    ],
    [
      'distribution over more than four nodes',
      { ...cpu({ 'distribute-cpus-across-numa': 'true' }), host: simpleHost(5, 4) },
      /above 4 NUMA nodes; the host has 5$/,
    ],
    [
      'align-by-socket under single-numa-node',
      { ...cpu({ 'align-by-socket': 'true' }), topologyManager: { policy: 'single-numa-node' } },
      /does not start/,
    ],
    [
      'nine NUMA nodes',
      { host: simpleHost(9, 2), topologyManager: { policy: 'best-effort' } },
      /9 NUMA nodes, and max-allowable-numa-nodes is 8; such a kubelet does not start/,
    ],
    [
      'reserved CPUs that do not exist',
      { reserved: CpuSet.parse('7-8') },
      /^reserved CPU 8 does not exist on the host$/,
    ],
    [
      'devices on more NUMA nodes than that',
      {
        host: simpleHost(2, 2),
        memoryManager: { policy: 'None', cells: MEMORY_OF_34 },
        topologyManager: { policy: 'restricted', options: MANY },
        deviceCells: [2, 3, 4, 5, 6, 7, 8],
      },
      /9 NUMA nodes of the host have CPUs or devices; at most 8/,
    ],
    [
      'many NUMA nodes before 1.36',
      {
        version: 'v1.35.6',
        memoryManager: { policy: 'None', cells: MEMORY_OF_34 },
        topologyManager: { policy: 'restricted', options: MANY },
      },
      /older than 1.36 tries every set of the 34 NUMA nodes/,
    ],
    [
      'more memory reserved than exists outside of huge pages',
      {
        memoryManager: {
          policy: 'Static',
          cells: [{ id: 1, memory: 2 ** 30, hugePages: { 'hugepages-2Mi': 2 ** 29 }, reserved: { memory: 2 ** 30 } }],
        },
      },
      /^reservedMemory: 1073741824 bytes of memory on NUMA node 1, which has 536870912; reserve less$/,
    ],
    [
      'nine NUMA nodes with static memory',
      { host: simpleHost(9, 2), memoryManager: { policy: 'Static', cells: [] } },
      /static memory manager tries every set of the 9 NUMA nodes/,
    ],
    [
      'align-by-socket with more sockets than NUMA nodes',
      {
        ...cpu({ 'align-by-socket': 'true' }),
        host: createHost({
          cells: [{ id: 0, cpus: '0-3' }],
          cores: ['0-1', '2-3'],
          sockets: [
            { id: 0, cpus: '0-1' },
            { id: 1, cpus: '2-3' },
          ],
        }),
      },
      /^align-by-socket needs no more sockets than NUMA nodes; such a kubelet does not start$/,
    ],
  ];
  for (const [name, config, expected] of cases) {
    it(name, () => {
      const kubelet = createKubelet({ ...base, ...config });
      assert.ok('unpredictable' in kubelet);
      assert.match(kubelet.unpredictable, expected);
    });
  }

  for (const [distances, isPredicted] of [
    [{ 0: [10, 21], 1: [21, 10] }, true],
    [{ 0: [10, 21], 1: [21] }, false],
  ] as const) {
    it(`closest nodes with distances ${JSON.stringify(distances)}: ${isPredicted ? '' : 'not '}predicted`, () => {
      const topologyManager = { policy: 'best-effort', options: { 'prefer-closest-numa-nodes': 'true' } };
      const kubelet = createKubelet({ ...base, topologyManager, distances });
      assert.equal(!('unpredictable' in kubelet), isPredicted);
    });
  }

  it('predicts configurations at their limits', () => {
    const closest = { policy: 'none', options: { 'prefer-closest-numa-nodes': 'true' } };
    const cells = (id: number, reserved: number) => [{ id, memory: 2 ** 30, reserved: { memory: reserved } }];
    const fine: Partial<KubeletConfig>[] = [
      { topologyManager: { policy: 'best-effort', options: { 'max-allowable-numa-nodes': '8' } } },
      { topologyManager: { policy: 'best-effort', options: { 'max-allowable-numa-nodes': '+16' } } },
      { topologyManager: closest },
      { topologyManager: { ...closest, policy: 'single-numa-node' } },
      { host: simpleHost(8, 4), topologyManager: { policy: 'best-effort' } },
      { host: simpleHost(4, 4), ...cpu({ 'distribute-cpus-across-numa': 'true' }) },
      { ...cpu({ 'align-by-socket': 'true' }), topologyManager: { policy: 'restricted' } },
      { memoryManager: { policy: 'None' } },
      { memoryManager: { policy: 'Static', cells: cells(0, 2 ** 30) } },
      { featureGates: { PodLevelResourceManagers: false, Another: true } },
      { ...cpu({ 'prefer-align-cpus-by-uncorecache': 'true' }), version: 'v1.33.0' },
      cpu({ 'distribute-cpus-across-numa': 'true', 'align-by-socket': 'true' }),
    ];
    for (const config of fine) {
      const kubelet = createKubelet({ ...base, ...config });
      assert.ok(!('unpredictable' in kubelet), `${JSON.stringify(config)}: ${JSON.stringify(kubelet)}`);
    }
    const on = ['1', 't', 'T', 'TRUE', 'true', 'True'];
    const off = ['0', 'f', 'F', 'FALSE', 'false', 'False'];
    const read = (value: string) => readCpuOptions({ 'full-pcpus-only': value }).fullPcpusOnly;
    assert.deepEqual([on.every(read), off.some(read), readCpuOptions().fullPcpusOnly], [true, false, false]);
  });
});

describe('behaviour by version', () => {
  const OLD = 'all-nodes by-id any cpus ignored any first-container';
  const OF_36 = OLD.replace('all-nodes', 'device-nodes');
  const OF_37 = 'device-nodes by-id any cpus ignored one-preferred first-container';
  const OF_38 = 'device-nodes by-core one-with-room groups minimum one-preferred all-containers';
  const cases: readonly [version: string, behaviour: string | undefined][] = [
    ['v1.33.1', OLD],
    ['1.36.0-rc.1+abc', OF_36],
    ['v1.36.3+k3s1', OF_36],
    ['v1.37', OF_37],
    ['v1.38.0-alpha.1', OF_38],
    ['v1.39.0', undefined],
    ['v1.32.13', undefined],
    ['v1.360.0', undefined],
    ['', undefined],
  ];
  for (const [version, expected] of cases) {
    it(`${version || 'no version'}: ${expected ?? 'not predicted'}`, () => {
      const of = behaviourOf(version);
      const values = of && [
        of.deviceHints,
        of.spread,
        of.spreadSockets,
        of.remainder,
        of.hintedNodes,
        of.distributionSockets,
        of.restoredPodMemory,
      ];
      assert.equal(values?.join(' '), expected);
    });
  }

  const nearest: readonly [version: string, nearest: string | undefined][] = [
    ['v1.39.2', '1.38'],
    ['v1.32.13', '1.33'],
    ['v2.0.0', undefined],
    ['unknown', undefined],
  ];
  for (const [version, expected] of nearest) {
    it(`${version} is nearest to ${expected ?? 'no version'}, and predicted as that only if asked to`, () => {
      assert.equal(nearestBehaviour(version)?.version, expected);
      const kubelet = createKubelet({
        version,
        host: simpleHost(2, 4),
        cpuManager: { policy: 'static' },
        reserved: CpuSet.of([0]),
        nearest: true,
      });
      const text = 'unpredictable' in kubelet ? undefined : kubelet.approximation;
      assert.equal(text, expected && `kubelet ${version} is predicted as ${expected}`);
    });
  }

  it('of 1.38 is predicted with options that no unread change affects, and with all as the nearest, which it says', () => {
    const of = (options: Record<string, string>, nearest: boolean) => {
      const cpuManager = { policy: 'static', options };
      const host = simpleHost(2, 4);
      return createKubelet({ version: 'v1.38.0-alpha.1', host, cpuManager, reserved: CpuSet.of([0]), nearest });
    };
    const text = (kubelet: ReturnType<typeof of>) =>
      'unpredictable' in kubelet ? kubelet.unpredictable : kubelet.approximation;
    assert.equal(text(of({ 'distribute-cpus-across-numa': 'true', 'align-by-socket': 'true' }, false)), undefined);
    assert.match(text(of({ 'distribute-cpus-across-cores': 'true' }, true)) ?? '', /^kubelet v1\.38.*#140766 alone$/);
  });

  it('has the gates of its version on unless they are configured', () => {
    const gates = {
      Pods: { effect: 'pods are', defaults: [36, 38].map((since) => ({ since, on: since > 36, basis: '' })) },
    };
    const of = (version: string, configured?: Record<string, boolean>) => unpredictedGates(version, configured, gates);
    const on = 'the feature gate Pods is on; pods are not predicted';
    assert.deepEqual([of('v1.35.1'), of('v1.37.0'), of('v1.38.0')], [undefined, undefined, on]);
    assert.deepEqual([of('v1.36.0', { Pods: true }), of('v1.38.0', { Pods: false })], [on, undefined]);
  });

  const GATE = 'PodLevelResourceManagers';
  it('is not predicted with a gate that is on', () => {
    const withGates = (featureGates: Readonly<Record<string, boolean>>) => {
      const cpuManager = { policy: 'static' };
      const config = { version: 'v1.37.0', host: simpleHost(2, 4), cpuManager, reserved: CpuSet.of([0]), featureGates };
      const kubelet = createKubelet(config);
      return 'unpredictable' in kubelet ? kubelet.unpredictable : undefined;
    };
    for (const gates of [{}, { [GATE]: false, Another: true }]) assert.equal(withGates(gates), undefined);
    assert.match(withGates({ [GATE]: true }) ?? '', /feature gate PodLevelResourceManagers is on/);
  });

  it('the page lists every change and every default of a gate, with versions and what was read', () => {
    const page = readFileSync(new URL('../../../docs/reference/compatibility.md', import.meta.url), 'utf8');
    const rows = CHANGES.map(({ change, since, what, file, basis }) => {
      return `| \`>=1.${since}.0\` | [#${change}](https://github.com/kubernetes/kubernetes/pull/${change}), \`${file}\` | ${what} | ${basis} |`;
    });
    const gates = Object.entries(GATES).flatMap(([name, { defaults }]) =>
      defaults.map(({ since, on, basis }) => `| \`${name}\` | \`>=1.${since}.0\` | ${on ? 'on' : 'off'} | ${basis} |`),
    );
    for (const row of [...rows, ...gates]) assert.ok(page.includes(row), row);
  });
});
