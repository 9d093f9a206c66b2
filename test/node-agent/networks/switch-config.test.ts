import assert from 'node:assert/strict';
import { parsePmdMask, type SwitchConfig, switchConfig } from '../../../node-agent/networks/switch-config.ts';
import type { Row } from '../../../node-agent/open-vswitch/ovsdb/replica.ts';

const uuids = (...ids: string[]) => ['set', ids.map((id) => ['uuid', id])];
const map = (pairs: Record<string, string>) => ['map', Object.entries(pairs)];
type Rows = Record<string, Row>;
/** What a database with these tables says. */
const configOf = (tables: Record<string, Rows>) =>
  switchConfig(new Map(Object.entries(tables).map(([name, rows]) => [name, new Map(Object.entries(rows))])));

/** A bridge whose only port has the given interfaces. */
const withInterfaces = (interfaces: Rows, name = 'br'): SwitchConfig =>
  configOf({
    Bridge: { b: { name, ports: uuids('p') } },
    Port: { p: { name: 'p', interfaces: uuids(...Object.keys(interfaces)) } },
    Interface: interfaces,
  });
const oneInterface = (row: Row) => withInterfaces({ i: { name: 'i', ...row } }).bridges.get('br')?.interfaces[0];
const root = (externalIds: Record<string, string>) =>
  configOf({ Open_vSwitch: { r: { external_ids: map(externalIds) } } });

describe('the configuration of a switch', () => {
  const polling: [string, Record<string, string>, string, boolean][] = [
    ['nothing', {}, 'system', false],
    ['dpdk-init false', { 'dpdk-init': 'false' }, '', false],
    ['dpdk-init true', { 'dpdk-init': 'true' }, '', true],
    ['dpdk-init try', { 'dpdk-init': 'try' }, '', true],
    ['a userspace bridge', {}, 'netdev', true],
  ];
  for (const [name, otherConfig, datapath, polls] of polling) {
    it(`${name}: ${polls ? 'polls on the CPUs of the mask' : 'does not poll, whatever the mask'}`, () => {
      const row = { other_config: map({ ...otherConfig, 'pmd-cpu-mask': '0xc' }) };
      const bridge = { name: 'br', datapath_type: datapath, ports: uuids() };
      const bridges = { b: bridge, c: { name: 'other', datapath_type: '' } };
      const config = configOf({ Open_vSwitch: { r: row }, Bridge: bridges });
      assert.equal(config.pmdCpus.toString(), polls ? '2-3' : '');
      assert.deepEqual([...config.bridges.keys()], ['br', 'other']);
    });
  }
});

describe('interfaces of a bridge', () => {
  it('are kernel or DPDK ports that may be uplinks, and internal ones by name; other types are ignored', () => {
    const config = withInterfaces({
      a: { name: 'absent' },
      b: { name: 'empty', type: '' },
      c: { name: 'kernel', type: 'system' },
      d: { name: 'dpdk', type: 'dpdk' },
      e: { name: 'own', type: 'internal' },
      f: { name: 'patch', type: 'patch', options: map({ peer: 'other' }) },
      g: { name: 'vhost', type: 'dpdkvhostuserclient' },
      h: { name: 'xdp', type: 'afxdp' },
      j: { name: 'xsk', type: 'afxdp-nonpmd' },
    });
    const { internal, patches, interfaces } = config.bridges.get('br') ?? {};
    const uplinks = interfaces?.map(({ name, kind }) => `${kind} ${name}`).join(', ');
    assert.equal(uplinks, 'system absent, system empty, system kernel, dpdk dpdk, afxdp xdp, system xsk');
    assert.deepEqual([...(patches ?? [])], [['patch', 'other']]);
    assert.deepEqual([...(internal ?? [])], ['own']);
  });

  it('belong to the first of two ports, and their port to the first of two bridges', () => {
    const portOf = (...interfaces: string[]) => ({ interfaces: uuids(...interfaces) });
    const config = configOf({
      Bridge: { a: { name: 'a', ports: uuids('p', 'q', 'gone') }, b: { name: 'b', ports: uuids('p', 'r') } },
      Port: { p: portOf('i'), q: portOf('i', 'gone'), r: portOf('j') },
      Interface: { i: { name: 'i' }, j: { name: 'j' } },
    });
    const names = (bridge: string) => config.bridges.get(bridge)?.interfaces.map(({ name }) => name);
    assert.deepEqual([names('a'), names('b')], [['i'], ['j']]);
  });

  it('have a link state and, of DPDK, a NUMA node up to 1023; anything else is unknown', () => {
    const links = ['up', 'down', '', ['set', []]].map((link_state) => oneInterface({ link_state })?.linkUp);
    assert.deepEqual(links, [true, false, undefined, undefined]);
    const nodeOf = (numa_id: string) => oneInterface({ type: 'dpdk', status: map({ numa_id }) })?.numaId;
    assert.deepEqual(['0', '1023', '1024', '-1', ''].map(nodeOf), [0, 1023, undefined, undefined, undefined]);
  });
});

describe('options of OVN for one chassis', () => {
  type Ids = Record<string, string>;
  const MAPPINGS = 'ovn-bridge-mappings';
  const IP = 'ovn-encap-ip';
  const unlikely = (names: string) =>
    `external_ids configure chassis ${names}, which is neither the system-id nor has an ovn-bridge-<chassis>; its networks count`;
  const id = (name: string) => ({ 'system-id': name });
  const mapped = (text: string, of = '') => ({ [`${MAPPINGS}${of}`]: text });
  const ip = (text: string, of = '') => ({ [`${IP}${of}`]: text });
  const PLAIN = { ...mapped('a:x'), ...ip('1.1.1.1') };
  const TWO_ENDPOINTS = { ...ip('1.1.1.1', '-host'), ...ip('2.2.2.2', '-dpu') };
  const rows: [string, Ids, mappings: string, endpoints: string, problem?: string][] = [
    [
      'the suffix of the system-id before the plain option',
      { ...PLAIN, ...id('hv1'), ...mapped('a:x,b:y', '-hv1'), ...ip('2.2.2.2', '-hv1') },
      'a:x b:y',
      '2.2.2.2',
    ],
    ['the same if it is empty', { ...PLAIN, ...id('hv1'), ...mapped('', '-hv1'), ...ip('', '-hv1') }, '', ''],
    ['a chassis with hyphens in its name', { ...id('a-b'), ...mapped('a:x'), ...mapped('b:y', '-a-b') }, 'b:y', ''],
    [
      'the default endpoint is no chassis',
      { ...id('hv1'), ...ip('1.1.1.1,2.2.2.2'), ...ip('2.2.2.2', '-default'), ...ip('2.2.2.2', '-default-hv1') },
      '',
      '1.1.1.1 2.2.2.2',
    ],
    ['without a system-id: the name comes from elsewhere', { ...PLAIN, ...mapped('b:y', '-hv1') }, 'b:y', '1.1.1.1'],
    [
      'two instances that contradict each other',
      { ...id('host'), ...mapped('a:x,b:y'), ...mapped('a:z', '-dpu'), 'ovn-bridge-dpu': 'br-dpu' },
      'a:x+z b:y',
      '',
      'OVN instances map physnet a to different bridges, which all count: x, z',
    ],
    [
      'two instances',
      { ...id('host'), ...mapped('a:x', '-host'), ...mapped('b:y', '-dpu'), 'ovn-bridge-dpu': 'd', ...TWO_ENDPOINTS },
      'a:x b:y',
      '1.1.1.1 2.2.2.2',
    ],
    [
      'a suffix of a chassis that is unlikely to run here',
      { ...id('hv1'), ...mapped('a:x'), ...mapped('b:y', '-hv2'), 'ovn-encap-type-hv3': 'geneve' },
      'a:x b:y',
      '',
      unlikely('hv2, hv3'),
    ],
  ];
  for (const [label, ids, mappings, endpoints, problem] of rows) {
    it(label, () => {
      const config = root(ids);
      const text = [...config.mappings].map(([physnet, bridges]) => `${physnet}:${bridges.join('+')}`).join(' ');
      assert.deepEqual([text, config.encapIps.join(' ')], [mappings, endpoints]);
      assert.deepEqual(config.problems, problem === undefined ? [] : [problem]);
    });
  }

  it('have several endpoints if they are of several instances', () => {
    assert.equal(root({ ...id('host'), ...TWO_ENDPOINTS }).hasSeveralEndpoints, true);
    assert.equal(root({ ...id('host'), ...ip('1.1.1.1') }).hasSeveralEndpoints, false);
  });

  it('name the integration bridges', () => {
    const bridges = (ids: Ids) => [...root(ids).integration].sort().join();
    assert.equal(bridges({ [MAPPINGS]: 'a:x' }), 'br-int');
    assert.equal(bridges({ 'ovn-bridge': 'one', 'ovn-bridge-dpu': 'two' }), 'br-int,one,two');
  });
});

describe('the limits of a configuration', () => {
  const LONG = 'x'.repeat(64);
  const CUT = `${'x'.repeat(62)}…`;
  const numbers = (count: number) => Array.from({ length: count }, (_, i) => i);
  const bridges = (count: number) => {
    const rows = numbers(count - 1).map((i) => [`b${i}`, { name: `br${i}` }] as const);
    const last = { name: 'last', datapath_type: 'netdev' };
    const mask = { other_config: map({ 'pmd-cpu-mask': '0xc' }) };
    return configOf({ Open_vSwitch: { r: mask }, Bridge: { ...Object.fromEntries(rows), last } });
  };
  const interfaces = (count: number) =>
    withInterfaces(Object.fromEntries(numbers(count).map((i) => [`i${i}`, { name: `e${i}` }])), LONG);
  const chassis = (count: number) =>
    root(Object.fromEntries(numbers(count).map((i) => [`ovn-bridge-mappings-c${i}`, `n${i}:b`])));
  const pairs = (count: number) => numbers(count).map((i) => `n${i}:b`);
  const mappings = (count: number) => root({ 'ovn-bridge-mappings': pairs(count).join() });
  const sizeOf = {
    bridges: ({ bridges: read }: SwitchConfig) => read.size,
    interfaces: ({ bridges: read }: SwitchConfig) => read.get(LONG)?.interfaces.length,
    mappings: ({ mappings: read }: SwitchConfig) => read.size,
  };
  const rows: [string, number, (count: number) => SwitchConfig, keyof typeof sizeOf, problem: string][] = [
    ['bridges', 1024, bridges, 'bridges', 'the switch has more than 1024 bridges; the rest is ignored'],
    [
      'ports of a bridge',
      256,
      interfaces,
      'interfaces',
      `bridge ${CUT} has 257 ports; only 256 are checked for uplinks`,
    ],
    ['chassis', 16, chassis, 'mappings', 'external_ids configure 17 chassis; only 16 are read'],
    ['mappings', 256, mappings, 'mappings', 'ovn-bridge-mappings has 257 physnets; only 256 are read'],
  ];
  for (const [label, most, make, what, problem] of rows) {
    it(`${most} ${label} are read, and a problem reports that there are more`, () => {
      assert.deepEqual([sizeOf[what](make(most)), make(most).problems], [most, []]);
      assert.deepEqual([sizeOf[what](make(most + 1)), make(most + 1).problems], [most, [problem]]);
    });
  }

  it('a bridge beyond the limit still counts if it polls', () => {
    assert.equal(bridges(1025).pmdCpus.toString(), '2-3');
  });
});

describe('lists in the configuration', () => {
  it('name four faulty mappings, each cut to 252 characters', () => {
    const { mappings, problems } = root({ 'ovn-bridge-mappings': ` a : x , b,a:y,:z,${'\u0001'.repeat(80)},e` });
    assert.deepEqual([...mappings], [['a', ['x']]]);
    assert.deepEqual(problems.toSpliced(3, 1), [
      'ovn-bridge-mappings: " b" maps nothing',
      'ovn-bridge-mappings: "a:y" is the second for its physnet',
      'ovn-bridge-mappings: ":z" maps nothing',
      'and 1 more',
    ]);
    assert.deepEqual([problems[3]?.length, problems[3]?.at(-1)], [252, '…']);
  });

  it('have mappings of up to 32 KiB; of a longer text, only pairs that end before that are read', () => {
    const read = (text: string) => {
      const { mappings, problems } = root({ 'ovn-bridge-mappings': text });
      return [[...mappings.keys()], problems];
    };
    const limit = 32 * 1024;
    assert.deepEqual(read(`a:${'x'.repeat(limit - 6)},b:y`.slice(0, limit)), [['a', 'b'], []]);
    const problem = 'ovn-bridge-mappings has 32774 characters; only 3 are read';
    assert.deepEqual(read(`a:x,b:${'y'.repeat(limit)}`), [['a'], [problem]]);
    assert.deepEqual(read(`a:${'y'.repeat(limit)}`)[0], []);
  });

  it('have up to sixteen addresses, without blanks and empty ones', () => {
    assert.deepEqual(root({ 'ovn-encap-ip': ' 10.0.0.1 ,, 10.0.0.2' }).encapIps, ['10.0.0.1', '10.0.0.2']);
    const many = Array.from({ length: 17 }, (_, i) => `10.0.0.${i}`);
    assert.deepEqual(root({ 'ovn-encap-ip': many.join() }).encapIps, many.slice(0, 16));
    const far = `${' '.repeat(32 * 1024 - 3)}1.1,2.2`;
    assert.deepEqual(root({ 'ovn-encap-ip': far }).encapIps, ['1.1'], 'of 32 KiB');
  });

  it('have a mask of up to 20000 digits; a longer one or one with other characters is a problem', () => {
    const read = (text: string) => {
      const problems: string[] = [];
      return [parsePmdMask(text, problems).toString(), problems];
    };
    assert.deepEqual(read(`${'0'.repeat(19_999)}3`), ['0-1', []]);
    assert.deepEqual(read(`${'0'.repeat(20_000)}3`), ['', ['other_config:pmd-cpu-mask: it has 20001 characters']]);
    for (const text of ['x', '0xg', '1-3', '-1', '0x 1']) {
      assert.deepEqual(read(text)[0], '', text);
      assert.match(String(read(text)[1]), /^other_config:pmd-cpu-mask: .*hexadecimal/, text);
    }
    for (const text of ['0xc', '0XC', 'c', '0x000000000000000c']) assert.deepEqual(read(text), ['2-3', []], text);
    for (const text of ['0x0', '']) assert.deepEqual(read(text), ['', []], text);
  });
});
