import assert from 'node:assert/strict';
import {
  CNI_VERSIONS,
  ConflistError,
  choosePrimary,
  GATE_FILES,
  gateConflist,
  MAX_CONF_BYTES,
  planConflist,
} from '../../../model/cni/conflist.ts';

const ENTRY = { type: 'plumbline-gate' };
const OVN = { cniVersion: '1.1.0', name: 'ovn-kubernetes', type: 'ovn-k8s-cni-overlay', ipam: {}, dns: {} };
const MULTUS = { cniVersion: '0.4.0', name: 'multus-cni-network', type: 'multus', capabilities: { bandwidth: true } };
const BRIDGE = {
  cniVersion: '1.0.0',
  name: 'pods',
  disableCheck: true,
  plugins: [{ type: 'bridge' }, { type: 'portmap', capabilities: { portMappings: true } }],
};
const gated = (primary: object) => {
  const { name, text } = gateConflist('10-primary', JSON.stringify(primary));
  return { name, conf: JSON.parse(text) as Record<string, unknown> };
};

describe('the gate’s configuration, generated from the primary', () => {
  it('wraps the first plugin of a list, and keeps the rest of the list', () => {
    const [first, second] = BRIDGE.plugins;
    assert.deepEqual(gated(BRIDGE), {
      name: GATE_FILES.list,
      conf: { ...BRIDGE, plugins: [{ ...ENTRY, delegate: first }, second] },
    });
  });

  it('wraps a single plugin, as of OVN-Kubernetes and multus, in a file that multus ignores', () => {
    const { cniVersion, name, ...ovn } = OVN;
    assert.deepEqual(gated(OVN), {
      name: '00-multus-plumbline-gate.json',
      conf: { cniVersion, name, ...ENTRY, delegate: ovn },
    });
    assert.deepEqual(gated({ cniVersion, name, plugins: [ovn] }), gated(OVN), 'and the same for a list of one');
  });

  it('copies the capabilities of a wrapped plugin to the wrapper', () => {
    const { conf } = gated(MULTUS);
    assert.deepEqual([conf['capabilities'], conf['delegate']], [{ bandwidth: true }, { type: 'multus' }]);
  });

  it('replaces an existing gate', () => {
    for (const before of [OVN, MULTUS, BRIDGE]) assert.deepEqual(gated(gated(before).conf), gated(before));
  });

  it('is made for each version that the gate supports, from a text of up to the greatest length', () => {
    for (const cniVersion of CNI_VERSIONS) assert.equal(gated({ ...OVN, cniVersion }).conf['cniVersion'], cniVersion);
    const text = JSON.stringify(OVN);
    assert.deepEqual(gateConflist('10-primary', text.padEnd(MAX_CONF_BYTES)), gateConflist('10-primary', text));
  });

  const SUPPORTED = ': the gate supports 0.3.0 to 1.1.0';
  const NO_TYPE = 'a plugin in it has no type';
  const wrongs: [string, string | object, string | RegExp][] = [
    ['invalid JSON', '{"cniVersion":', /10-primary: not JSON/],
    ['too long a text', JSON.stringify(OVN).padEnd(MAX_CONF_BYTES + 1), 'longer than 1048576 characters'],
    ['an unsupported version', { ...OVN, cniVersion: '0.2.0' }, `cniVersion "0.2.0"${SUPPORTED}`],
    ['a missing name', { ...OVN, name: '' }, 'it has no name'],
    ['a missing list of plugins', { ...BRIDGE, plugins: [] }, /no plugins/],
    ['a plugin without a type', { ...BRIDGE, plugins: [{}] }, NO_TYPE],
  ];
  for (const [what, conf, message] of wrongs) {
    it(`refuses ${what}`, () => {
      const text = typeof conf === 'string' ? conf : JSON.stringify(conf);
      assert.throws(() => gateConflist('10-primary', text), {
        name: ConflistError.name,
        message: typeof message === 'string' ? `10-primary: ${message}` : message,
      });
    });
  }
});

describe('the gate’s configuration after a change', () => {
  const file = (name: string, value?: object | string) => ({
    name,
    text: value === undefined ? undefined : typeof value === 'string' ? value : JSON.stringify(value),
  });
  const ownOf = (primary: object) => {
    const { name, text } = gateConflist('10-primary', JSON.stringify(primary));
    return file(name, text);
  };

  it('sorts before every primary of multus and others', () => {
    for (const name of Object.values(GATE_FILES))
      for (const other of ['00-multus.conf', '00-multus.conflist', '01-kube-ovn.conflist'])
        assert.ok(name < other, other);
  });

  it('is generated from the first file that a runtime reads', () => {
    const files = ['99-loopback.conf', '.x.tmp', '10-ovn.conf', '00-multus.conf.new', 'README'].map((name) =>
      file(name),
    );
    assert.equal(choosePrimary(files)?.name, '10-ovn.conf');
    assert.equal(choosePrimary([file(GATE_FILES.list), file(GATE_FILES.plugin)]), undefined);
  });

  const other = file('99-loopback.conf', '{}');
  const cases: [what: string, files: ReturnType<typeof file>[], plan: object][] = [
    [
      'is written when a primary appears',
      [file('10-ovn.conf', OVN)],
      { kind: 'write', name: GATE_FILES.plugin, remove: [] },
    ],
    [
      'stays unchanged if nothing changed',
      [file('10-ovn.conf', OVN), ownOf(OVN), other],
      { kind: 'keep', problem: undefined },
    ],
    [
      'replaces its file when multus is installed before a list',
      [file('00-multus.conf', MULTUS), file('10-pods.conflist', BRIDGE), ownOf(BRIDGE)],
      { kind: 'write', name: GATE_FILES.plugin, remove: [GATE_FILES.list] },
    ],
    ['is removed together with the primary', [ownOf(OVN)], { kind: 'remove', remove: [GATE_FILES.plugin] }],
    [
      'stays unchanged while the primary is unreadable',
      [file('10-ovn.conf'), ownOf(OVN)],
      { kind: 'keep', problem: /cannot be read/ },
    ],
    [
      'reports a primary before the gate',
      [file('00-a.conf', OVN)],
      { kind: 'keep', problem: /00-a\.conf sorts before/ },
    ],
  ];
  for (const [what, files, expected] of cases) {
    it(what, () => {
      const plan = planConflist(files) as unknown as Record<string, unknown>;
      for (const [key, value] of Object.entries(expected)) {
        if (value instanceof RegExp) assert.match(String(plan[key]), value);
        else assert.deepEqual(plan[key], value, key);
      }
    });
  }
});
