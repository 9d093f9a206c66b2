import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { CpuSet } from '../../../model/cpu-set.ts';
import { createHost } from '../../../model/host.ts';
import { createKubelet, type KubeletConfig } from '../../../model/kubelet/kubelet.ts';
import { readCpuOptions } from '../../../model/kubelet/options.ts';
import { behaviourOf, CHANGES, GATES, nearestBehaviour, unpredictedGates } from '../../../model/kubelet/versions.ts';
import { simpleHost } from './fixture.ts';

const MANY = { policy: 'restricted', options: { 'max-allowable-numa-nodes': '64' } };
const MEMORY_OF_34 = Array.from({ length: 34 }, (_, id) => ({ id, memory: 2 ** 30 }));
const BASE: KubeletConfig = {
  version: 'v1.36.0',
  host: simpleHost(2, 4),
  cpuManager: { policy: 'static' },
  reserved: CpuSet.of([0]),
};
const kubeletOf = (config: Partial<KubeletConfig>) => createKubelet({ ...BASE, ...config });
/** Why a kubelet is not predicted, or as which version; undefined if it is predicted as it is. */
function textOf(config: Partial<KubeletConfig>): string | undefined {
  const kubelet = kubeletOf(config);
  return 'unpredictable' in kubelet ? kubelet.unpredictable : kubelet.approximation;
}
const cpu = (...options: string[]): Partial<KubeletConfig> => ({
  cpuManager: { policy: 'static', options: Object.fromEntries(options.map((name) => [name, 'true'])) },
});
const [ACROSS_NUMA, ACROSS_CORES, BY_SOCKET] = [
  'distribute-cpus-across-numa',
  'distribute-cpus-across-cores',
  'align-by-socket',
];
const memory = (...cells: object[]) => ({ memoryManager: { policy: 'Static', cells } }) as Partial<KubeletConfig>;
const policy = (name: string) => ({ topologyManager: { policy: name } });
const on34 = { memoryManager: { policy: 'None', cells: MEMORY_OF_34 }, topologyManager: MANY };
const ALPHA = { version: 'v1.38.0-alpha.1' };
const pages = { id: 1, memory: 2 ** 30, hugePages: { 'hugepages-2Mi': 2 ** 29 }, reserved: { memory: 2 ** 30 } };
const TWO_SOCKETS = createHost({
  cells: [{ id: 0, cpus: '0-3' }],
  cores: ['0-1', '2-3'],
  sockets: ['0-1', '2-3'].map((cpus, id) => ({ id, cpus })),
});
describe('a configuration that is not predicted is reported with the reason', () => {
  const cases: readonly [string, Partial<KubeletConfig>, RegExp][] = [
    ['an old version', { version: 'v1.32.13' }, /^kubelet v1\.32\.13 is not predicted, only 1\.33 to 1\.38-alpha$/],
    ['no version, even as the nearest', { version: 'unknown', nearest: true }, /kubelet unknown is not predicted/],
    [
      'an option whose change was not read',
      { ...cpu(ACROSS_CORES!), ...ALPHA },
      /^from 1\.38 on, distribute-cpus-across-cores takes one CPU .*, by the description of kubernetes #140766 alone$/,
    ],
    [
      'memory of pods whose change was not read',
      { ...ALPHA, topologyManager: { policy: 'restricted', scope: 'pod' }, ...memory() },
      /^from 1\.38 on, after a restart, the pod-scope hint/,
    ],
    [
      'resizes of exclusive CPUs',
      { featureGates: { InPlacePodVerticalScalingExclusiveCPUs: true } },
      /^the feature gate InPlacePodVerticalScalingExclusiveCPUs is on; resizes of exclusive CPUs are not predicted$/,
    ],
    [
      'distribution over five nodes',
      { ...cpu(ACROSS_NUMA!), host: simpleHost(5, 4) },
      /above 4 NUMA nodes; the host has 5$/,
    ],
    [
      'align-by-socket under single-numa-node',
      { ...cpu(BY_SOCKET!), ...policy('single-numa-node') },
      /^align-by-socket and single-numa-node are mutually exclusive; such a kubelet does not start$/,
    ],
    [
      'nine NUMA nodes',
      { host: simpleHost(9, 2), ...policy('best-effort') },
      /9 NUMA nodes, and max-allowable-numa-nodes is 8; such a kubelet does not start/,
    ],
    [
      'reserved CPUs that do not exist',
      { reserved: CpuSet.parse('7-8') },
      /^reserved CPU 8 does not exist on the host$/,
    ],
    [
      'devices on more NUMA nodes than that',
      { host: simpleHost(2, 2), ...on34, deviceCells: [2, 3, 4, 5, 6, 7, 8] },
      /9 NUMA nodes of the host have CPUs or devices; at most 8/,
    ],
    [
      'many NUMA nodes before 1.36',
      { version: 'v1.35.6', ...on34 },
      /older than 1.36 tries every set of the 34 NUMA nodes/,
    ],
    [
      'more memory reserved than exists outside of huge pages',
      memory(pages),
      /^reservedMemory: 1073741824 bytes of memory on NUMA node 1, which has 536870912; reserve less$/,
    ],
    [
      'nine NUMA nodes with static memory',
      { host: simpleHost(9, 2), ...memory() },
      /static memory manager tries every set of the 9 NUMA nodes/,
    ],
    [
      'align-by-socket with more sockets than NUMA nodes',
      { ...cpu(BY_SOCKET!), host: TWO_SOCKETS },
      /^align-by-socket needs no more sockets than NUMA nodes; such a kubelet does not start$/,
    ],
    [
      'closest nodes without all distances',
      {
        topologyManager: { policy: 'best-effort', options: { 'prefer-closest-numa-nodes': 'true' } },
        distances: { 0: [10, 21], 1: [21] },
      },
      /^prefer-closest-numa-nodes is set, but the distances of the NUMA nodes are not known$/,
    ],
  ];
  for (const [name, config, expected] of cases) it(name, () => assert.match(textOf(config) ?? '', expected));

  it('predicts configurations at their limits', () => {
    const options = { 'prefer-closest-numa-nodes': 'true' };
    const limit = (value: string) => ({ policy: 'best-effort', options: { 'max-allowable-numa-nodes': value } });
    const fine: Partial<KubeletConfig>[] = [
      { topologyManager: limit('8') },
      { topologyManager: limit('+16') },
      { topologyManager: { policy: 'none', options } },
      { topologyManager: { policy: 'single-numa-node', options } },
      { topologyManager: { policy: 'best-effort', options }, distances: { 0: [10, 21], 1: [21, 10] } },
      { host: simpleHost(8, 4), ...policy('best-effort') },
      { host: simpleHost(4, 4), ...cpu(ACROSS_NUMA!) },
      { ...cpu(BY_SOCKET!), ...policy('restricted') },
      { memoryManager: { policy: 'None' } },
      memory({ id: 0, memory: 2 ** 30, reserved: { memory: 2 ** 30 } }),
      { featureGates: { PodLevelResourceManagers: false, Another: true } },
      { ...cpu('prefer-align-cpus-by-uncorecache'), version: 'v1.33.0' },
      cpu(ACROSS_NUMA!, BY_SOCKET!),
      // No unread change affects these options.
      { ...cpu(ACROSS_NUMA!, BY_SOCKET!), ...ALPHA },
    ];
    for (const config of fine) assert.equal(textOf(config), undefined, JSON.stringify(config));
    const on = ['1', 't', 'T', 'TRUE', 'true', 'True'];
    const off = ['0', 'f', 'F', 'FALSE', 'false', 'False'];
    const read = (value: string) => readCpuOptions({ 'full-pcpus-only': value }).fullPcpusOnly;
    assert.deepEqual([on.every(read), off.some(read), readCpuOptions().fullPcpusOnly], [true, false, false]);
  });
});

describe('behaviour by version', () => {
  const OLD = 'all-nodes any ignored cpus by-id any first-container';
  const OF_36 = 'device-nodes any ignored cpus by-id any first-container';
  const OF_37 = 'device-nodes one-preferred ignored cpus by-id any first-container';
  const OF_38 = 'device-nodes one-preferred minimum groups by-core one-with-room all-containers';
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
      const behaviour = behaviourOf(version);
      assert.equal(behaviour && Object.values(behaviour).join(' '), expected);
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
      const text = expected ? `is predicted as ${expected}` : 'is not predicted, only 1.33 to 1.38-alpha';
      assert.equal(textOf({ version, nearest: true }), `kubelet ${version} ${text}`);
    });
  }

  it('of 1.38 is predicted with all options as the nearest, which it says', () =>
    assert.match(textOf({ ...cpu(ACROSS_CORES!), ...ALPHA, nearest: true }) ?? '', /^kubelet v1\.38.*#140766 alone$/));

  it('has the gates of its version on unless they are configured', () => {
    const gates = {
      Pods: { effect: 'pods are', defaults: [36, 38].map((since) => ({ since, on: since > 36 })) },
    };
    const of = (version: string, configured?: Record<string, boolean>) => unpredictedGates(version, configured, gates);
    const on = 'the feature gate Pods is on; pods are not predicted';
    assert.deepEqual([of('v1.35.1'), of('v1.37.0'), of('v1.38.0')], [undefined, undefined, on]);
    assert.deepEqual([of('v1.36.0', { Pods: true }), of('v1.38.0', { Pods: false })], [on, undefined]);
  });

  it('is not predicted with a gate that is on', () => {
    const of = (on: boolean) => textOf({ version: 'v1.37.0', featureGates: { PodLevelResourceManagers: on } });
    assert.equal(of(false), undefined);
    assert.match(of(true) ?? '', /feature gate PodLevelResourceManagers is on/);
  });

  it('the page lists every change and every default of a gate, with versions and what was read', () => {
    const page = readFileSync(new URL('../../../docs/reference/compatibility.md', import.meta.url), 'utf8');
    const rows = Object.values(CHANGES).map(
      ({ change, since, what }) =>
        new RegExp(`^\\| \`>=1.${since}.0\` \\| \\[#${change}\\]\\(.*\`.+\` \\| ${what} \\| .+ \\|$`, 'm'),
    );
    const gates = Object.entries(GATES).flatMap(([name, { defaults }]) =>
      defaults.map(
        ({ since, on }) =>
          new RegExp(`^\\| \`${name}\` \\| \`>=1.${since}.0\` \\| ${on ? 'on' : 'off'} \\| .+ \\|$`, 'm'),
      ),
    );
    for (const row of [...rows, ...gates]) assert.match(page, row);
  });
});
