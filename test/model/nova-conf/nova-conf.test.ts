import assert from 'node:assert/strict';
import { ParseError } from '../../../model/errors.ts';
import { parseOsloConfig, readNovaConf } from '../../../model/nova-conf/nova-conf.ts';

const parse = (...texts: string[]) =>
  parseOsloConfig(texts.map((text, index) => ({ name: index === 0 ? 'nova.conf' : `${index}.conf`, text })));
const read = (...texts: string[]) => readNovaConf(parse(...texts));
const plain = (config: ReturnType<typeof parse>) =>
  Object.fromEntries([...config].map(([section, options]) => [section, Object.fromEntries(options)]));

describe('files in the format of oslo.config', () => {
  const cases: readonly { readonly name: string; readonly text: string; readonly expected: object }[] = [
    {
      name: 'both signs are allowed; the first one counts',
      text: '[a]\nx = 1:2\ny: 3=4',
      expected: { a: { x: '1:2', y: '3=4' } },
    },
    { name: 'a value may have several lines', text: '[a]\nx = 1,\n  2,\n\t3', expected: { a: { x: '1,\n2,\n3' } } },
    {
      name: 'comments need their own lines',
      text: '[a]\n# x = 0\n;\nx = 1 # one',
      expected: { a: { x: '1 # one' } },
    },
    {
      name: 'sections have any case, except DEFAULT',
      text: '[NeuTron]\nx=1\n[neutron]\ny=2\n[DEFAULT]\n[default]',
      expected: { neutron: { x: '1', y: '2' }, DEFAULT: {}, default: {} },
    },
    { name: 'lines may end as in Windows', text: '[a]\r\nx = 1\r\n', expected: { a: { x: '1' } } },
    { name: 'the last of duplicate options counts', text: '[a]\nx = 1\nx = 2', expected: { a: { x: '2' } } },
  ];
  for (const { name, text, expected } of cases) {
    it(name, () => assert.deepEqual(plain(parse(text)), expected));
  }

  const wrong: readonly { readonly text: string; readonly error: RegExp }[] = [
    { text: 'x = 1', error: /nova\.conf, line 1: "x = 1": it precedes the first \[section\]/ },
    { text: '[a]\n\n[b', error: /line 3: "\[b": a section is its name in brackets/ },
    { text: '[a]\nphysnets', error: /line 2: "physnets": neither a section nor name = value/ },
    { text: '[a]\nx = 1\n# so far\n  2', error: /line 4: "2": a line that begins with a blank/ },
  ];
  for (const { text, error } of wrong) {
    it(`refuses ${JSON.stringify(text)}`, () => assert.throws(() => parse(text), error));
  }
});

const NEUTRON = `
[neutron]
physnets = foo, bar
[neutron_physnet_foo]
numa_nodes = 0
[neutron_physnet_bar]
numa_nodes = 2, 3,2
[neutron_tunnel]
numa_nodes = 1
`;

describe('nova.conf: locations of networks', () => {
  it('physnets and the tunnel, with duplicates once', () => {
    assert.deepEqual(read(NEUTRON), {
      networks: { physnets: { foo: { numaNodes: [0] }, bar: { numaNodes: [2, 3] } }, tunnel: { numaNodes: [1] } },
      cpus: { dedicated: undefined, shared: undefined },
      warnings: [],
    });
  });

  it('a listed physnet without NUMA nodes has no affinity, with a warning', () => {
    const { networks, warnings } = read('[neutron]\nphysnets = bar');
    assert.deepEqual(networks, { physnets: { bar: { numaNodes: [] } } });
    assert.match(warnings.join(), /bar has no \[neutron_physnet_bar\] numa_nodes: Nova does not start with this/);
  });

  it('a section of an unlisted physnet is ignored, with a warning', () => {
    const { networks, warnings } = read('[neutron_physnet_foo]\nnuma_nodes = 1');
    assert.deepEqual(networks, {});
    assert.match(warnings.join(), /\[neutron_physnet_foo\] is left out/);
  });

  for (const [nodes, error] of [
    ['-1', /"-1" means that the NUMA node of the NIC is unknown/],
    ['9999', /"9999" is not a NUMA node/],
  ] as const) {
    it(`refuses numa_nodes = ${nodes}`, () => {
      assert.throws(() => read(`[neutron_tunnel]\nnuma_nodes = ${nodes}`), error);
    });
  }

  it('a physnet may have the name __proto__', () => {
    const { networks } = read('[neutron]\nphysnets = __proto__\n[neutron_physnet___proto__]\nnuma_nodes = 1');
    assert.deepEqual(Object.entries(networks.physnets ?? {}), [['__proto__', { numaNodes: [1] }]]);
  });
});

describe('nova.conf: CPUs', () => {
  it('of pinned guests and of all others are read', () => {
    const { cpus } = read('[compute]\ncpu_dedicated_set = 2-15,^8\ncpu_shared_set = 1');
    assert.equal(`${cpus.dedicated} ${cpus.shared}`, '2-7,9-15 1');
  });

  it('vcpu_pin_set of older files is read', () => {
    assert.equal(`${read('[DEFAULT]\nvcpu_pin_set = 4-7').cpus.dedicated}`, '4-7');
    const both = read('[DEFAULT]\nvcpu_pin_set = 4-7\n[compute]\ncpu_dedicated_set = 2');
    assert.equal(`${both.cpus.dedicated}`, '2');
    assert.match(both.warnings.join(), /vcpu_pin_set is ignored/);
    const powered = readNovaConf(parseOsloConfig([{ name: 'n', text: '[libvirt]\ncpu_power_management = True\n' }]));
    assert.match(powered.warnings.join(), /cpu_power_management has no counterpart/);
  });

  for (const set of ['2-', 'a', '5,^5', '0-999999999', '^3']) {
    it(`refuses cpu_dedicated_set = ${set}`, () => {
      assert.throws(() => read(`[compute]\ncpu_dedicated_set = ${set}`), ParseError);
    });
  }
});
