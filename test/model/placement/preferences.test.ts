import assert from 'node:assert/strict';
import type { HostReport } from '../../../model/kubelet/host-report.ts';
import { PLACED_RESOURCE, PLACEMENT_ANNOTATION, physnetResource, TUNNEL_RESOURCE } from '../../../model/names.ts';
import {
  formatPreferences,
  interfacesBy,
  neededNetworks,
  parsePreferences,
  placementNeedsOf,
  readableNeedsOf,
} from '../../../model/placement/preferences.ts';
import type { PodShape } from '../../../model/shapes.ts';
import { container } from '../kubelet/fixture.ts';
import { needs, node, physnet, place } from './fixture.ts';

const NO_PREFERENCES = { preferred: [], spansCells: false, interfaces: {}, guestThreads: 1 };

const EAST = physnetResource('east');
const WEST = physnetResource('west');
const full = {
  preferred: [EAST, TUNNEL_RESOURCE],
  spansCells: true,
  interfaces: { [EAST]: 'net1, net2' },
  guestThreads: 2,
};
const many = (count: number) => Array.from({ length: count }, (_, i) => physnetResource(`p${i}`));
const objectOf = (names: readonly string[], value: string) => Object.fromEntries(names.map((name) => [name, value]));
describe('preferences in an annotation', () => {
  it('are written only if there are any', () => {
    assert.equal(formatPreferences(NO_PREFERENCES), '{}');
    assert.equal(formatPreferences({ ...NO_PREFERENCES, spansCells: true }), '{"spansCells":true}');
  });

  it('are read field by field, up to 64 networks and 200 characters of names', () => {
    const read = (changes: object) => parsePreferences(JSON.stringify({ ...full, ...changes }));
    const cases: [object, object][] = [
      [{ preferred: 'x' }, { preferred: [] }],
      [{ spansCells: 'x' }, { spansCells: false }],
      [{ guestThreads: 'x' }, { guestThreads: 1 }],
      [{ preferred: many(65) }, { preferred: [] }],
      [{ interfaces: objectOf(many(65), 'x') }, { interfaces: {} }],
      [{ interfaces: { [EAST]: 'x'.repeat(201) } }, { interfaces: {} }],
    ];
    for (const [changes, expected] of cases) assert.deepEqual(read(changes), { ...full, ...expected });
  });

  it('name up to four interfaces of a network, in a text that can be read again', () => {
    const of = (names: readonly string[]) => interfacesBy(names.map((name) => [EAST, name]))[EAST];
    const several = [EAST, WEST, EAST].map((resource, i) => [resource, 'abc'[i] ?? ''] as const);
    assert.deepEqual(interfacesBy(several), { [EAST]: 'a, c', [WEST]: 'b' });
    assert.equal(of(['a', 'b', 'c', 'd', 'e', 'f']), 'a, b, c, d, and 2 more');
    assert.equal(of(['x'.repeat(64)]), `${'x'.repeat(62)}…`);
    const longest = of(['w', 'x', 'y', 'z'].map((letter) => letter.repeat(63)));
    assert.ok(longest?.startsWith(`${'w'.repeat(63)}, x`) && longest.endsWith('…'), longest);
    const interfaces = interfacesBy(many(70).map((resource) => [resource, 'w'.repeat(63)]));
    assert.deepEqual(Object.keys(interfaces), many(64));
    const cutText = { ...full, interfaces: { [EAST]: longest ?? '' } };
    assert.deepEqual(parsePreferences(formatPreferences(cutText)), cutText);
  });
});
describe('networks of a pod', () => {
  it('are those of its device resources, required, and others that it prefers', () => {
    assert.deepEqual(neededNetworks([EAST, 'openshift.io/nic'], full), [
      { name: 'net1, net2', kind: 'physnet', physnet: 'east', affinity: 'required' },
      { name: '', kind: 'tunnel', affinity: 'preferred' },
    ]);
    const interfaces = { [WEST]: 'b', [TUNNEL_RESOURCE]: 't' };
    const twice = { ...NO_PREFERENCES, preferred: [WEST, WEST, 'x/y'], interfaces };
    assert.deepEqual(neededNetworks([TUNNEL_RESOURCE, TUNNEL_RESOURCE], twice), [
      { name: 't', kind: 'tunnel', affinity: 'required' },
      { name: 'b', kind: 'physnet', physnet: 'west', affinity: 'preferred' },
    ]);
    assert.deepEqual(neededNetworks([], NO_PREFERENCES), []);
  });
});
const PREFERS = JSON.stringify({ preferred: [TUNNEL_RESOURCE] });
const LAUNCHER = { 'kubevirt.io': 'virt-launcher' };
const WHOLE = { 'kubevirt.io/CPUManagerPolicyBetaOptions': 'full-pcpus-only' };
interface Parts {
  readonly cpu?: number | string;
  readonly limits?: Record<string, string>;
  readonly labels?: Record<string, string>;
  readonly annotations?: Record<string, string>;
  readonly nodeSelector?: Record<string, string>;
  readonly init?: number;
}
const podOf = ({ cpu = 2, limits = {}, labels, annotations, nodeSelector, init }: Parts): PodShape => ({
  metadata: { uid: 'a', labels, annotations },
  spec: {
    containers: [container('c', cpu, limits)],
    ...(init !== undefined && { initContainers: [container('i', init)] }),
    nodeSelector,
  },
});
const needsOf = (parts: Parts) => placementNeedsOf(podOf(parts));
describe('needs from a pod', () => {
  const sharing: [what: string, parts: Parts, mayShare: boolean][] = [
    ['a pod with whole CPUs and no other wish', {}, true],
    ['a pod with a network', { limits: { [TUNNEL_RESOURCE]: '1' } }, false],
    ['a pod that prefers a network', { annotations: { [PLACEMENT_ANNOTATION]: PREFERS } }, false],
    ['a pod that asks for a place', { limits: { [PLACED_RESOURCE]: '1' } }, false],
    ['a pod that asks for whole cores', { annotations: { 'plumbline.dev/align': 'whole-cores' } }, false],
    ['a launcher that asks for whole cores', { labels: LAUNCHER, annotations: WHOLE }, false],
  ];
  for (const [what, parts, mayShare] of sharing)
    it(`${what} ${mayShare ? 'may' : 'may not'} share CPUs`, () => assert.equal(needsOf(parts).mayShare, mayShare));

  it('are unknown if an amount or a mask cannot be read', () => {
    const broken = [{ cpu: 'x' }, { cpu: '500m', labels: LAUNCHER, annotations: { 'plumbline.dev/cpu-mask': 'x' } }];
    for (const parts of broken) assert.equal(readableNeedsOf(podOf(parts)), undefined);
    assert.deepEqual(readableNeedsOf(podOf({})), needsOf({}));
    assert.throws(() => readableNeedsOf(undefined as unknown as PodShape), TypeError);
  });
});

type Case = readonly [string, pod: Parameters<typeof needs>, Partial<HostReport>, cpus: string, score: number];
const NO_NETWORKS = { physnets: [], tunnel: undefined };
const THREADS = { cpuManager: { policy: 'static' } };
const ON_EAST = { physnets: [{ name: 'east', cells: '0' }], tunnel: undefined };
const FULL_EAST = [{ podUID: 'x', container: 'c', cpus: '8-15' }];
const nothing: readonly never[] = [];
/**
 * Housekeeping is 3/6 for keeping off the NUMA nodes of NICs, 2/6 for how full the node is afterwards, 1/6 for whole
 * cores. Without a preferred network the score is 0.4 plus 0.6 of it; with some it is 0.2 of it plus 0.8 of how near
 * they are.
 */
const CASES: readonly Case[] = [
  // 3/6 + 2/6 * 4/16 + 1/6 = 0.75
  ['a node without networks', ['a', 4], NO_NETWORKS, '2-5', 0.4 + 0.6 * 0.75],
  // 3/6 + 2/6 * 12/16 + 1/6
  ['a fuller node', ['a', 4], { ...NO_NETWORKS, assignments: FULL_EAST }, '2-5', 0.4 + 0.6 * (11 / 12)],
  // 3/6 + 2/6 * 3/16 + 1/6 * 7/8
  ['one split core of eight', ['a', 3], { ...NO_NETWORKS, ...THREADS }, '2-4', 0.4 + 0.6 * (1 / 2 + 1 / 16 + 7 / 48)],
  // 2/6 * 4/16 + 1/6 = 0.25
  ['NICs on each NUMA node that the pod does not need', ['a', 4], {}, '2-5', 0.4 + 0.6 * 0.25],
  // 3/6 * 8/10 + 2/6 * 10/16 + 1/6
  ['a fifth of the CPUs near a NIC of others', ['a', 10], ON_EAST, '2-3,8-15', 0.4 + 0.6 * (2 / 5 + 5 / 24 + 1 / 6)],
  ['a preferred network nearby', ['a', 4, [physnet('east', 'preferred')]], {}, '2-5', 0.8 + 0.2 * 0.75],
  ['a preferred network far away', ['a', 4, [physnet('west', 'preferred')]], {}, '2-5', 0.8 * 0.5 + 0.2 * 0.25],
  ['a pod without CPUs of its own', ['a', 0.5, nothing], NO_NETWORKS, '', 0.4 + 0.6 * (1 / 2 + 1 / 6)],
];
describe('the score', () => {
  for (const [what, pod, host, cpus, score] of CASES) {
    it(`${what}: ${score.toFixed(4)}`, () => {
      const placement = place(needs(...pod), node(host));
      assert.ok('containers' in placement, JSON.stringify(placement));
      assert.equal(placement.containers.map((container) => `${container.cpus}`).join(' '), cpus);
      assert.ok(Math.abs(placement.score - score) < 1e-9, `${placement.score}, not ${score}`);
    });
  }

  it('is higher near a preferred network, then on a node that has it, than anywhere else, however full the nodes are', () => {
    const busy = (cpus: string) => [{ podUID: 'x', container: 'c', cpus }];
    const loads = [[], busy('8-9'), busy('10-15'), busy('4-7,10-15')];
    const pod = needs('a', 2, [physnet('west', 'preferred')]);
    const scores = (cells: string | undefined) =>
      loads.map((assignments) => {
        const others = [{ name: 'south', cells: '0' }];
        const physnets = cells === undefined ? [] : [{ name: 'west', cells }, ...others];
        const placement = place(pod, node({ physnets, tunnel: undefined, assignments }));
        return 'score' in placement ? placement.score : Number.NaN;
      });
    // The kubelet gets no device request and assigns CPUs of NUMA node 0.
    const [near, onNode, absent] = [scores('0'), scores('1'), scores(undefined)];
    assert.ok(Math.min(...near) > Math.max(...onNode), `${near} > ${onNode}`);
    assert.ok(Math.min(...onNode) > Math.max(...absent), `${onNode} > ${absent}`);
  });
});
