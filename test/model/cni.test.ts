import assert from 'node:assert/strict';
import fc from 'fast-check';
import { ConflistError, choosePrimary, GATE_FILES, gateConflist, planConflist } from '../../model/cni/conflist.ts';
import { decideAdd, decideStatus, dependsOnDpu, hasDpuDevice, parseCniArgs, podOf } from '../../model/cni/decide.ts';

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

  const wrongs: [string, string, RegExp][] = [
    ['invalid JSON', '{"cniVersion":', /10-primary: not JSON/],
    ['an array', '[]', /not a JSON object/],
    ['an unsupported version', JSON.stringify({ ...OVN, cniVersion: '0.2.0' }), /"0\.2\.0": the gate supports 0\.3\.0/],
    ['a missing version', JSON.stringify({ ...OVN, cniVersion: undefined }), /cniVersion undefined/],
    ['a missing name', JSON.stringify({ ...OVN, name: '' }), /no name/],
    ['a missing list of plugins', JSON.stringify({ ...BRIDGE, plugins: [] }), /no plugins/],
    ['a list with only a gate', JSON.stringify({ ...BRIDGE, plugins: [ENTRY] }), /no plugins/],
    ['a plugin without a type', JSON.stringify({ ...BRIDGE, plugins: [{}] }), /no type/],
    ['an invalid plugin', JSON.stringify({ ...BRIDGE, plugins: ['bridge'] }), /no type/],
  ];
  for (const [name, text, message] of wrongs) {
    it(`refuses ${name}`, () => {
      assert.throws(() => gateConflist('10-primary', text), { name: ConflistError.name, message });
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
      for (const other of [
        '00-multus.conf',
        '00-multus.conflist',
        '01-kube-ovn.conflist',
        '05-cilium.conflist',
        'a.conf',
      ])
        assert.ok(name < other, `${name} ${other}`);
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
      'is written again when the primary changed',
      [file('10-ovn.conf', { ...OVN, mtu: 9000 }), ownOf(OVN)],
      { kind: 'write', name: GATE_FILES.plugin, remove: [] },
    ],
    [
      'replaces its file when multus is installed before a list',
      [file('00-multus.conf', MULTUS), file('10-pods.conflist', BRIDGE), ownOf(BRIDGE)],
      { kind: 'write', name: GATE_FILES.plugin, remove: [GATE_FILES.list] },
    ],
    [
      'removes the second of the gate’s own files',
      [file('10-ovn.conf', OVN), ownOf(OVN), ownOf(BRIDGE)],
      { kind: 'write', name: GATE_FILES.plugin, remove: [GATE_FILES.list] },
    ],
    ['is removed together with the primary', [ownOf(OVN)], { kind: 'remove', remove: [GATE_FILES.plugin] }],
    ['is not written without a primary', [], { kind: 'keep', problem: undefined }],
    [
      'stays unchanged while the primary is half written',
      [file('10-ovn.conf', '{"cniVer'), ownOf(OVN)],
      { kind: 'keep', problem: /10-ovn\.conf: not JSON/ },
    ],
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

  it('needs no further change after one pass', () => {
    const primary = fc.constantFrom<[string, object]>(
      ['10-ovn.conf', OVN],
      ['00-multus.conf', MULTUS],
      ['10-pods.conflist', BRIDGE],
    );
    fc.assert(
      fc.property(
        fc.array(primary, { maxLength: 3 }),
        fc.array(fc.constantFrom(OVN, MULTUS, BRIDGE)),
        (primaries, own) => {
          const files = new Map<string, { name: string; text: string | undefined }>();
          for (const [name, value] of primaries) files.set(name, file(name, value));
          for (const value of own) files.set(ownOf(value).name, ownOf(value));
          const plan = planConflist([...files.values()]);
          if (plan.kind === 'write') files.set(plan.name, file(plan.name, plan.text));
          if (plan.kind !== 'keep') for (const name of plan.remove) files.delete(name);
          assert.deepEqual(planConflist([...files.values()]), { kind: 'keep', problem: undefined });
          const ours = [...files.keys()].filter((name) => name.includes('plumbline-gate'));
          assert.equal(ours.length, primaries.length === 0 ? 0 : 1);
        },
      ),
    );
  });
});

describe('the decision of the gate', () => {
  const dead = { ready: false, reason: 'its lease ran out' };
  const question = {
    dpu: dead,
    scope: 'all',
    namespace: 'default',
    exempt: ['kube-system'],
    hasDevice: undefined,
  } as const;

  it('refuses with code 11 and the reason for ADD if the DPU is dead, and with 50 for STATUS if enabled', () => {
    assert.deepEqual(decideAdd(question), { code: 11, message: 'DPU Not Ready: its lease ran out' });
    assert.deepEqual(decideStatus(dead, true), { code: 50, message: 'DPU Not Ready: its lease ran out' });
    assert.equal(decideStatus(dead, false), undefined);
    assert.equal(decideStatus(undefined, true), undefined);
    assert.equal(decideStatus({ ready: true, reason: '' }, true), undefined);
  });

  const passes: [string, Partial<Parameters<typeof decideAdd>[0]>][] = [
    ['a live DPU', { dpu: { ready: true, reason: '' } }],
    ['a node without a DPU', { dpu: undefined }],
    ['a system pod', { namespace: 'kube-system' }],
    ['namespaces by prefix', { exempt: ['def*'] }],
    ['every namespace', { exempt: ['*'] }],
    ['a namespace that is one of several exempt ones', { exempt: ['kube-system', 'default'] }],
    ['with scope device, an attachment without a device', { scope: 'device', hasDevice: false }],
  ];
  for (const [what, more] of passes)
    it(`passes ${what}`, () => assert.equal(decideAdd({ ...question, ...more }), undefined));

  const holds: [string, Partial<Parameters<typeof decideAdd>[0]>][] = [
    ['a pod without a namespace', { namespace: undefined }],
    ['with scope device, an attachment with unknown devices', { scope: 'device', hasDevice: undefined }],
    ['with scope device, an attachment with a device', { scope: 'device', hasDevice: true }],
    ['a namespace that only starts like an exempt one', { namespace: 'kube-system-2' }],
    ['a namespace that only ends like an exempt prefix', { exempt: ['ult*'] }],
    ['a namespace that an exempt one only starts like', { exempt: ['default-2', 'default-*'] }],
    ['a node whose namespaces are not exempt', { exempt: [] }],
  ];
  for (const [what, more] of holds)
    it(`refuses ${what}`, () => assert.equal(decideAdd({ ...question, ...more })?.code, 11));

  it('does not depend on a DPU that the node lacks, and on a live one as on a dead one', () => {
    assert.equal(dependsOnDpu({ ...question, dpu: undefined }), false);
    assert.equal(dependsOnDpu({ ...question, dpu: { ready: true, reason: '' } }), true);
    assert.equal(dependsOnDpu({ ...question, namespace: 'kube-system' }), false);
  });

  it('D9: does not count Plumbline’s markers and KubeVirt’s devices as devices of a DPU', () => {
    const cases: [resources: string[], expected: boolean][] = [
      [[], false],
      [['physnet.plumbline.dev/a', 'plumbline.dev/tunnel'], false],
      [['devices.kubevirt.io/kvm', 'devices.kubevirt.io/tun'], false],
      [['plumbline.dev/tunnel', 'openshift.io/dpu'], true],
    ];
    for (const [resources, expected] of cases) assert.equal(hasDpuDevice(resources), expected, resources.join());
  });

  it('reads pairs of CNI_ARGS, uses the first of duplicates and ignores the rest', () => {
    const pod = podOf(parseCniArgs('IgnoreUnknown=1;;=;x;K8S_POD_NAMESPACE=b;K8S_POD_NAMESPACE=a;K8S_POD_UID='));
    assert.deepEqual(pod, { namespace: 'b', name: undefined, uid: undefined });
    const named = podOf(parseCniArgs('K8S_POD_NAME=n;K8S_POD_UID=u=1;=K8S_POD_NAMESPACE'));
    assert.deepEqual(named, { namespace: undefined, name: 'n', uid: 'u=1' });
    assert.deepEqual(podOf(parseCniArgs(undefined)), { namespace: undefined, name: undefined, uid: undefined });
  });
});
