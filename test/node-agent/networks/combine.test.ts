import assert from 'node:assert/strict';
import { CpuSet } from '../../../model/cpu-set.ts';
import type { NodeNetworks } from '../../../model/networks/reach.ts';
import { combineNetworks, type NetworksView, UNKNOWN_NETWORKS } from '../../../node-agent/networks/combine.ts';
import type { DiscoveredNetworks } from '../../../node-agent/networks/locate.ts';
import type { MapInUse } from '../../../node-agent/networks/node-map.ts';
import { twoCells as host, set } from '../support.ts';

type NetworkSources = Parameters<typeof combineNetworks>[0];

const networks = (physnets: Record<string, string>, tunnel?: string): NodeNetworks => ({
  physnets: new Map(Object.entries(physnets).map(([name, cells]) => [name, set(cells)])),
  tunnel: tunnel === undefined ? undefined : set(tunnel),
});
const foundNetworks = (more: Partial<DiscoveredNetworks> = {}): DiscoveredNetworks => ({
  networks: networks({ a: '0' }),
  down: new Set(),
  polled: new Set(),
  doubts: [],
  carriers: new Map(),
  lacksAddress: false,
  ...more,
});
const NO_MAP: MapInUse = { override: undefined, fault: undefined, isLastGood: false };
const mapped = (override: NodeNetworks): MapInUse => ({ ...NO_MAP, override });

const combine = (more: Partial<NetworkSources>) =>
  combineNetworks({
    host,
    map: NO_MAP,
    discovered: foundNetworks(),
    pmdCpus: CpuSet.EMPTY,
    switchFaults: [],
    switchProblem: undefined,
    ...more,
  });

/** The complete view, with its sets as text. */
const displayed = (view: NetworksView) => ({
  ...view,
  networks: [...view.networks.physnets].map(([name, cells]) => `${name}=${cells}`).join(' '),
  tunnel: view.networks.tunnel?.toString(),
  down: [...view.down],
  pmdCpus: view.pmdCpus.toString(),
});
const EMPTY = { ...displayed(UNKNOWN_NETWORKS), problems: [] };

describe('a faulty network map', () => {
  for (const [name, reason, mapFault] of [
    ['unreadable', 'InvalidMap', 'the fault; there is no earlier map, so no network is reported'],
    ['for an unknown node', 'NodeUnknown', undefined],
  ] as const) {
    it(`${name}, without an earlier map: reports one problem, no network, and unchanged polling CPUs`, () => {
      const map: MapInUse = { ...NO_MAP, fault: { reason, message: 'the fault' } };
      const view = combine({ map, pmdCpus: set('1'), switchFaults: ['x'], switchProblem: 'y' });
      const problems = [{ reason, message: 'the fault' }];
      assert.deepEqual(displayed(view), { ...EMPTY, pmdCpus: '1', problems, mapFault });
    });
  }

  const lastGood = { ...NO_MAP, override: networks({ b: '1' }), isLastGood: true };
  it('for an unknown node, with an earlier map: keeps the earlier networks and reports a problem that names the map in use', () => {
    const map: MapInUse = { ...lastGood, fault: { reason: 'NodeUnknown', message: 'no labels' } };
    assert.deepEqual(displayed(combine({ map })), {
      ...EMPTY,
      networks: 'a=0 b=1',
      problems: [{ reason: 'NodeUnknown', message: 'no labels; the last good map stays in use' }],
      drift: ['physnet b: the map says NUMA node 1, it was not found here'],
    });
  });

  it('unreadable, with an earlier map: keeps the earlier networks and reports the fault, without a problem', () => {
    const view = combine({ map: { ...lastGood, fault: { reason: 'InvalidMap', message: 'no YAML' } } });
    assert.deepEqual([view.problems, view.mapFault], [[], 'no YAML; the last good map stays in use']);
  });
});

describe('an unreadable switch', () => {
  const map = mapped(UNKNOWN_NETWORKS.networks);
  const cases: [string, Partial<NetworkSources>, string?][] = [
    ['networks were found before, without a map', {}, 'gone; keeping what was last known'],
    ['networks were found before, with a map', { map }, 'gone; keeping what was last known'],
    ['no network was ever found', { discovered: undefined }, 'gone; and there is no network map for this node'],
    ['no network was ever found, with a map', { discovered: undefined, map }],
  ];
  for (const [label, more, message] of cases) {
    it(`gives ${message === undefined ? 'no' : 'a'} problem if ${label}`, () => {
      const expected = message === undefined ? [] : [{ reason: 'SwitchUnreachable', message }];
      assert.deepEqual(combine({ switchProblem: 'gone', ...more }).problems, expected);
    });
  }

  it('shows the mapped networks if it was never read: none is down, and there is no drift', () => {
    const view = combine({ discovered: undefined, map: mapped(networks({ b: '1' }, '0')), pmdCpus: set('0') });
    assert.deepEqual(displayed(view), { ...EMPTY, networks: 'b=1', tunnel: '0', pmdCpus: '0' });
  });
});

describe('doubts about networks', () => {
  const doubts = [
    { network: 'a', text: 'of a' },
    { network: undefined, text: 'of the tunnel' },
  ];
  for (const [what, map, ...texts] of [
    ['are reported after the faults of the switch if there is no map', NO_MAP, 'of a', 'of the tunnel'],
    ['are removed for a mapped physnet only', mapped(networks({ a: '' })), 'of the tunnel'],
    ['are removed for a mapped tunnel only', mapped(networks({}, '0')), 'of a'],
  ] as const) {
    it(what, () => {
      const { problems } = combine({ discovered: foundNetworks({ doubts }), map, switchFaults: ['of the switch'] });
      const expected = ['of the switch', ...texts].map((message) => ({ reason: 'NotFound', message }));
      assert.deepEqual(problems, expected);
    });
  }
});

describe('limits of a view', () => {
  const faults = (count: number) => Array.from({ length: count }, (_, i) => `${i}`);

  it('shows up to 32 problems, then one with the number of others and the reason of the first', () => {
    assert.deepEqual(combine({ switchFaults: faults(32) }).problems.at(-1), { reason: 'NotFound', message: '31' });
    const { problems } = combine({ switchProblem: 'gone', switchFaults: faults(34) });
    assert.equal(problems.length, 33);
    assert.deepEqual(problems.at(-1), { reason: 'SwitchUnreachable', message: 'and 3 more' });
  });

  const physnets = (count: number) =>
    networks(Object.fromEntries(Array.from({ length: count }, (_, i) => [`n${i}`, '0'])));
  it('shows up to 256 physnets, and names three of the others before every other problem', () => {
    assert.deepEqual(combine({ discovered: foundNetworks({ networks: physnets(256) }) }).problems, []);
    const view = combine({ discovered: foundNetworks({ networks: physnets(260) }), switchFaults: ['x'] });
    assert.deepEqual([view.networks.physnets.size, view.networks.physnets.has('n256')], [256, false]);
    const message = '4 physnets exceed the 256 of a report; ignored: n256, n257, n258, and 1 more';
    assert.deepEqual(view.problems, [
      { reason: 'TooMany', message },
      { reason: 'NotFound', message: 'x' },
    ]);
  });

  it('reports a name that fits no resource as a problem, with the reason', () => {
    const discovered = foundNetworks({ networks: networks({ ['é'.repeat(40)]: '0', b: '1' }) });
    const [{ reason, message = '' } = {}, ...more] = combine({ discovered }).problems;
    assert.deepEqual([reason, more], ['InvalidName', []]);
    assert.match(message, /1 to 30 bytes/);
  });
});

describe('found networks and mapped networks', () => {
  it('the map wins, drift is shown, and a network that is down stays so', () => {
    const discovered = foundNetworks({ networks: networks({ a: '0', b: '1', c: '' }, '1'), down: new Set(['b']) });
    const view = combine({ discovered, map: mapped(networks({ a: '1', c: '0', d: '' }, '')) });
    assert.deepEqual(displayed(view), {
      ...EMPTY,
      networks: 'a=1 b=1 c=0 d=',
      tunnel: '',
      down: ['b'],
      drift: [
        'physnet a: the map says NUMA node 1, it was found on NUMA node 0',
        'physnet c: the map says NUMA node 0, it was found on no NUMA node in particular',
        'physnet d: the map says no NUMA node in particular, it was not found here',
        'the tunnel: the map says no NUMA node in particular, it was found on NUMA node 1',
      ],
    });
  });
});

describe('unpolled networks: no polling CPU on their NUMA node', () => {
  const discovered = foundNetworks({
    networks: networks({ a: '0', b: '0-1' }, '1'),
    polled: new Set(['a', 'b', undefined, 'unknown']),
  });
  const TUNNEL = 'the tunnel';
  const bare = (mask: string, what: string, cells: string) =>
    `${what} is on NUMA node ${cells}, where no CPU of pmd-cpu-mask (${mask}) is`;
  const cases: [string, string, string[]][] = [
    ['are none without a mask, because the switch chooses the CPUs', '', []],
    ['are none with a polling CPU on each NUMA node', '3-4', []],
    ['if NUMA node 0 has none', '5', [bare('5', 'physnet a', '0'), bare('5', 'physnet b', '0')]],
    ['if none has one', '9', [bare('9', 'physnet a', '0'), bare('9', 'physnet b', '0, 1'), bare('9', TUNNEL, '1')]],
  ];
  for (const [label, pmdCpus, unpolled] of cases) {
    it(label, () => assert.deepEqual(combine({ discovered, pmdCpus: set(pmdCpus) }).unpolled, unpolled));
  }
});
