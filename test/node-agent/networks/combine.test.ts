import assert from 'node:assert/strict';
import { CpuSet } from '../../../model/cpu-set.ts';
import { createHost } from '../../../model/host.ts';
import type { NodeNetworks } from '../../../model/networks/reach.ts';
import { combineNetworks, type NetworkSources, type NetworksView } from '../../../node-agent/networks/combine.ts';
import type { DiscoveredNetworks } from '../../../node-agent/networks/locate.ts';
import type { MapInUse } from '../../../node-agent/networks/map-source.ts';

const set = (text: string) => CpuSet.parse(text);
const host = createHost({
  cells: [
    { id: 0, cpus: '0-3' },
    { id: 1, cpus: '4-7' },
  ],
  cores: ['0-1', '2-3', '4-5', '6-7'],
});

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
const EMPTY = {
  networks: '',
  tunnel: undefined,
  down: [],
  pmdCpus: '',
  problems: [],
  mapFault: undefined,
  drift: [],
  unpolled: [],
};

describe('a faulty network map', () => {
  const faults: [string, 'InvalidMap' | 'NodeUnknown', string | undefined][] = [
    ['unreadable', 'InvalidMap', 'the fault; there is no earlier map, so no network is reported'],
    ['for an unknown node', 'NodeUnknown', undefined],
  ];
  for (const [name, reason, mapFault] of faults) {
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
    const map: MapInUse = { ...lastGood, fault: { reason: 'InvalidMap', message: 'no YAML' } };
    const view = combine({ map });
    assert.deepEqual(view.problems, []);
    assert.equal(view.mapFault, 'no YAML; the last good map stays in use');
  });

  for (const [length, isCut] of [
    [400, false],
    [401, true],
  ] as const) {
    it(`a fault of ${length} characters is ${isCut ? 'cut' : 'not cut'}`, () => {
      const message = 'x'.repeat(length);
      const view = combine({ map: { ...NO_MAP, fault: { reason: 'InvalidMap', message } } });
      const text = isCut ? `${'x'.repeat(399)}…` : message;
      assert.equal(view.problems[0]?.message, text);
      assert.equal(view.mapFault, `${text}; there is no earlier map, so no network is reported`);
    });
  }
});

describe('an unreadable switch', () => {
  const cases: [string, Partial<NetworkSources>, string[]][] = [
    ['gives a problem if networks were found before, without a map', {}, ['gone; keeping what was last known']],
    [
      'gives a problem if networks were found before, with a map',
      { map: mapped(networks({})) },
      ['gone; keeping what was last known'],
    ],
    [
      'gives a problem if no network was ever found, without a map',
      { discovered: undefined },
      ['gone; and there is no network map for this node'],
    ],
    [
      'gives no problem if no network was ever found, with a map',
      { discovered: undefined, map: mapped(networks({})) },
      [],
    ],
  ];
  for (const [name, more, messages] of cases) {
    it(name, () => {
      const expected = messages.map((message) => ({ reason: 'SwitchUnreachable', message }));
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
  const messages = (override: NodeNetworks | undefined) =>
    combine({
      discovered: foundNetworks({ doubts }),
      map: override === undefined ? NO_MAP : mapped(override),
      switchFaults: ['of the switch'],
    }).problems;
  const notFound = (...texts: string[]) => texts.map((message) => ({ reason: 'NotFound', message }));

  it('are reported after the faults of the switch if there is no map', () =>
    assert.deepEqual(messages(undefined), notFound('of the switch', 'of a', 'of the tunnel')));
  it('are removed for a mapped physnet only', () =>
    assert.deepEqual(messages(networks({ a: '' })), notFound('of the switch', 'of the tunnel')));
  it('are removed for a mapped tunnel only', () =>
    assert.deepEqual(messages(networks({}, '0')), notFound('of the switch', 'of a')));
});

describe('limits of a view', () => {
  const faults = (count: number) => combine({ switchFaults: Array.from({ length: count }, (_, i) => `${i}`) }).problems;

  it('shows up to 32 problems, then one with the number of others and the reason of the first', () => {
    assert.equal(faults(32).length, 32);
    assert.deepEqual(faults(32).at(-1), { reason: 'NotFound', message: '31' });
    const more = combine({
      switchProblem: 'gone',
      switchFaults: Array.from({ length: 32 }, (_, i) => `${i}`),
    }).problems;
    assert.equal(more.length, 33);
    assert.deepEqual(more.slice(-2), [
      { reason: 'NotFound', message: '30' },
      { reason: 'SwitchUnreachable', message: 'and 1 more' },
    ]);
    assert.deepEqual(faults(35).at(-1), { reason: 'NotFound', message: 'and 3 more' });
  });

  it('a problem has at most 400 characters', () => {
    const view = combine({ switchFaults: ['x'.repeat(400), 'y'.repeat(401)] });
    assert.deepEqual(
      view.problems.map(({ message }) => message),
      ['x'.repeat(400), `${'y'.repeat(399)}…`],
    );
  });

  const physnets = (count: number) =>
    networks(Object.fromEntries(Array.from({ length: count }, (_, i) => [`n${i}`, '0'])));
  it('shows up to 256 physnets, and names the others before every other problem', () => {
    assert.deepEqual(combine({ discovered: foundNetworks({ networks: physnets(256) }) }).problems, []);
    const view = combine({ discovered: foundNetworks({ networks: physnets(257) }), switchFaults: ['x'] });
    assert.deepEqual([view.networks.physnets.size, view.networks.physnets.has('n256')], [256, false]);
    assert.deepEqual(view.problems, [
      { reason: 'TooMany', message: '1 physnets exceed the 256 of a report; ignored: n256' },
      { reason: 'NotFound', message: 'x' },
    ]);
  });

  it('names three of four physnets beyond the limit', () => {
    const view = combine({ discovered: foundNetworks({ networks: physnets(260) }) });
    assert.equal(
      view.problems[0]?.message,
      '4 physnets exceed the 256 of a report; ignored: n256, n257, n258, and 1 more',
    );
  });

  it('reports a name that fits no resource as a problem, with the reason', () => {
    const { problems } = combine({
      discovered: foundNetworks({ networks: networks({ ['é'.repeat(40)]: '0', b: '1' }) }),
    });
    assert.equal(problems.length, 1);
    assert.equal(problems[0]?.reason, 'InvalidName');
    assert.match(problems[0]?.message ?? '', /1 to 30 bytes/);
  });

  it('shows 32 networks that differ from the map, and the number of others', () => {
    const view = combine({ map: mapped(physnets(34)) });
    assert.equal(view.drift.length, 33);
    assert.equal(view.drift[31], 'physnet n31: the map says NUMA node 0, it was not found here');
    assert.equal(view.drift[32], 'and 2 more');
  });
});

describe('drift from the map', () => {
  it('is reported for the tunnel on another NUMA node and for a physnet without a NUMA node', () => {
    const discovered = foundNetworks({ networks: networks({ a: '' }, '1') });
    assert.deepEqual(combine({ discovered, map: mapped(networks({ a: '1' }, '')) }).drift, [
      'physnet a: the map says NUMA node 1, it was found on no NUMA node in particular',
      'the tunnel: the map says no NUMA node in particular, it was found on NUMA node 1',
    ]);
  });
});

describe('unpolled networks: no polling CPU on their NUMA node', () => {
  const discovered = foundNetworks({
    networks: networks({ a: '0', b: '0-1' }, '1'),
    polled: new Set(['a', 'b', undefined, 'unknown']),
  });
  const cases: [string, string, string[]][] = [
    ['are none without a mask, because the switch chooses the CPUs', '', []],
    ['are none with a polling CPU on each NUMA node', '3-4', []],
    [
      'are reported if NUMA node 0 has no polling CPU',
      '5',
      [
        'physnet a is on NUMA node 0, where no CPU of pmd-cpu-mask (5) is',
        'physnet b is on NUMA node 0, where no CPU of pmd-cpu-mask (5) is',
      ],
    ],
    [
      'are reported if NUMA node 1 has no polling CPU',
      '0',
      [
        'physnet b is on NUMA node 1, where no CPU of pmd-cpu-mask (0) is',
        'the tunnel is on NUMA node 1, where no CPU of pmd-cpu-mask (0) is',
      ],
    ],
    [
      'are reported if neither NUMA node has a polling CPU',
      '9',
      [
        'physnet a is on NUMA node 0, where no CPU of pmd-cpu-mask (9) is',
        'physnet b is on NUMA node 0, 1, where no CPU of pmd-cpu-mask (9) is',
        'the tunnel is on NUMA node 1, where no CPU of pmd-cpu-mask (9) is',
      ],
    ],
  ];
  for (const [name, pmdCpus, unpolled] of cases) {
    it(name, () => assert.deepEqual(combine({ discovered, pmdCpus: set(pmdCpus) }).unpolled, unpolled));
  }
});
