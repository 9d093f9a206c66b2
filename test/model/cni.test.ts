import assert from 'node:assert/strict';
import { choosePrimary, GATE_FILES, gateConflist, MAX_CONF_BYTES, planConflist } from '../../model/cni/conflist.ts';
import { dpuConnections } from '../../model/cni/connection-status.ts';
import {
  decideAdd,
  decideStatus,
  dependsOnDpu,
  formatGateState,
  type GateState,
  hasDpuDevice,
  type ObservedLease,
  parseCniArgs,
  podOf,
} from '../../model/cni/decide.ts';

const TIME = '2026-01-01T00:00:00.000000Z';
const LEASE: ObservedLease = { bootId: 'b', renewTime: TIME, changedAt: 1, readAt: 2, changes: 3 };
const REASON = 'its lease ran out';
const EXEMPT = { scope: 'device', exempt: ['kube-system'] } as const;
const STATE: GateState = { dpu: 'not-ready', reason: REASON, status: true, ...EXEMPT, at: 10 };
const written = (changes: Partial<GateState>) => JSON.parse(formatGateState({ ...STATE, ...changes })) as GateState;
describe('the gate’s state as a file', () => {
  it('has every field, one line, and a lease only if one is watched', () => {
    assert.deepEqual(written({ lease: LEASE }), { ...STATE, lease: LEASE });
    assert.deepEqual(written({ lease: undefined }), STATE);
    assert.match(formatGateState({ ...STATE, lease: LEASE }), /^[^\n]+\n$/);
  });

  it('has up to 512 characters of a reason, without what JSON would escape', () => {
    const { reason } = written({ reason: 'x'.repeat(512) });
    assert.equal(reason, 'x'.repeat(512));
    assert.equal(written({ reason: `${'x'.repeat(512)}yz` }).reason, 'x'.repeat(512));
    const text = formatGateState({ ...STATE, reason: 'a "b" \\ c\n\t\u0000\u0085d’' });
    assert.ok(!text.includes('\\'), text);
    assert.equal(written({ reason: 'a"b\\c\nd’' }).reason, 'a b c d’');
  });

  it('has a lease whose time has up to 64 characters', () => {
    assert.equal(written({ lease: { ...LEASE, renewTime: '9'.repeat(64) } }).lease?.renewTime.length, 64);
    assert.equal(written({ lease: { ...LEASE, renewTime: '9'.repeat(65) } }).lease, undefined);
  });
});
describe('the decision of the gate', () => {
  const dead = { ready: false, reason: REASON };
  const live = { ready: true, reason: '' };
  const question = { ...EXEMPT, dpu: dead, scope: 'all', namespace: 'default', hasDevice: undefined } as const;

  it('refuses with code 11 and the reason for ADD if the DPU is dead, and with 50 for STATUS if enabled', () => {
    assert.deepEqual(decideAdd(question), { code: 11, message: 'DPU Not Ready: its lease ran out' });
    assert.deepEqual(decideStatus(dead, true), { code: 50, message: 'DPU Not Ready: its lease ran out' });
    const passed = [decideStatus(dead, false), decideStatus(undefined, true), decideStatus(live, true)];
    assert.deepEqual(passed, [undefined, undefined, undefined]);
  });

  const adds: [does: 'passes' | 'refuses', string, Partial<Parameters<typeof decideAdd>[0]>][] = [
    ['passes', 'a live DPU', { dpu: live }],
    ['passes', 'a system pod', { namespace: 'kube-system' }],
    ['passes', 'namespaces by prefix', { exempt: ['def*'] }],
    ['passes', 'with scope device, an attachment without a device', { scope: 'device', hasDevice: false }],
    ['refuses', 'a pod without a namespace', { namespace: undefined }],
    ['refuses', 'with scope device, an attachment with unknown devices', { scope: 'device', hasDevice: undefined }],
    ['refuses', 'with scope device, an attachment with a device', { scope: 'device', hasDevice: true }],
    ['refuses', 'a namespace that only starts like an exempt one', { namespace: 'kube-system-2' }],
    ['refuses', 'a namespace that only ends like an exempt prefix', { exempt: ['ult*'] }],
  ];
  for (const [does, what, more] of adds)
    it(`${does} ${what}`, () =>
      assert.equal(decideAdd({ ...question, ...more })?.code, does === 'passes' ? undefined : 11));

  it('does not depend on a DPU that the node lacks, and on a live one as on a dead one', () => {
    assert.equal(dependsOnDpu({ ...question, dpu: undefined }), false);
    assert.equal(dependsOnDpu({ ...question, dpu: live }), true);
    assert.equal(dependsOnDpu({ ...question, namespace: 'kube-system' }), false);
  });

  it('D9: does not count Plumbline’s markers and KubeVirt’s devices as devices of a DPU', () => {
    for (const resources of [[], ['physnet.plumbline.dev/a', 'plumbline.dev/tunnel'], ['devices.kubevirt.io/kvm']])
      assert.equal(hasDpuDevice(resources), false, resources.join());
    assert.equal(hasDpuDevice(['plumbline.dev/tunnel', 'openshift.io/dpu']), true);
  });

  it('reads pairs of CNI_ARGS, uses the first of duplicates and ignores the rest', () => {
    const pod = podOf(parseCniArgs('IgnoreUnknown=1;;=;x;K8S_POD_NAMESPACE=b;K8S_POD_NAMESPACE=a;K8S_POD_UID='));
    assert.deepEqual(pod, { namespace: 'b', name: undefined, uid: undefined });
    const named = podOf(parseCniArgs('K8S_POD_NAME=n;K8S_POD_UID=u=1;=K8S_POD_NAMESPACE'));
    assert.deepEqual(named, { namespace: undefined, name: 'n', uid: 'u=1' });
    assert.deepEqual(podOf(parseCniArgs(undefined)), { namespace: undefined, name: undefined, uid: undefined });
  });
});
const DETAILS = 'k8s.ovn.org/dpu.connection-details';
const STATUS = 'k8s.ovn.org/dpu.connection-status';
const text = (value: unknown) => (typeof value === 'string' ? value : JSON.stringify(value));
/** Each network in a text. */
function linesOf(details: unknown, status?: unknown): string[] {
  const annotations = {
    ...(details !== undefined && { [DETAILS]: text(details) }),
    ...(status !== undefined && { [STATUS]: text(status) }),
  };
  return dpuConnections(annotations).map(({ network, state, reason }) => `${network}: ${state}: ${reason}`);
}
describe('the connections of a pod that the DPU reports', () => {
  const details = { default: { pfId: '0' }, 'ns/net': { pfId: '0' } };
  const states = { 'ns/net': { Status: 'Ready' }, default: { Status: 'Error', Reason: 'no port' } };
  const twoNetworks = { a: {}, b: {} };
  const both = { status: 'x', Status: 'Ready', reason: 'r', Reason: 'R' };
  const lower = { a: { status: 'Ready', reason: 'fine' }, b: both };
  const cases: [what: string, lines: string[], expected: string[]][] = [
    ['are none without annotations', linesOf(undefined), []],
    ['are absent without an answer', linesOf(details), ['default: absent: ', 'ns/net: absent: ']],
    ['have a state for each network', linesOf(details, states), ['default: not ready: no port', 'ns/net: Ready: ']],
    [
      'have lower-case fields, which apply before the others',
      linesOf(twoNetworks, lower),
      ['a: Ready: fine', 'b: not ready: r'],
    ],
    ['have the status as a reason', linesOf({ a: {} }, { a: { status: 'Waiting' } }), ['a: not ready: Waiting']],
    ['have the older form without a network', linesOf({ pfId: '0' }, { Status: 'Ready' }), ['default: Ready: ']],
    ['leave out networks that are not objects', linesOf({ a: {}, b: 3, c: null, d: [] }), ['a: absent: ']],
  ];
  for (const [what, lines, expected] of cases) it(what, () => assert.deepEqual(lines, expected));

  it('are up to 64, with up to 120 characters of a name, a status and a reason', () => {
    const names = Array.from({ length: 70 }, (_, i) => `n${i}`);
    const of = (count: number) => linesOf(Object.fromEntries(names.slice(0, count).map((name) => [name, {}])));
    assert.deepEqual([of(64).length, of(65).length], [64, 64]);
    const long = 'x'.repeat(120);
    const [longest] = linesOf({ [long]: {} }, { [long]: { status: 'Error', reason: long } });
    assert.equal(longest, `${long}: not ready: ${long}`);
    const [longer = ''] = linesOf({ [`${long}x`]: {} }, { [`${long}x`]: { status: `${long}x` } });
    const cutText = `${'x'.repeat(119)}…`;
    assert.equal(longer, `${cutText}: not ready: ${cutText}`);
  });
});

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
    for (const cniVersion of ['0.3.0', '0.3.1', '0.4.0', '1.0.0', '1.1.0'])
      assert.equal(gated({ ...OVN, cniVersion }).conf['cniVersion'], cniVersion);
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
        name: 'ConflistError',
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
  const ovn = file('10-ovn.conf', OVN);
  const cases: [what: string, files: ReturnType<typeof file>[], plan: object][] = [
    ['is written for a new primary', [ovn], { kind: 'write', name: GATE_FILES.plugin, remove: [] }],
    ['stays unchanged if nothing changed', [ovn, ownOf(OVN), other], { kind: 'keep', problem: undefined }],
    [
      'replaces its file when multus is installed before a list',
      [file('00-multus.conf', MULTUS), file('10-pods.conflist', BRIDGE), ownOf(BRIDGE)],
      { kind: 'write', name: GATE_FILES.plugin, remove: [GATE_FILES.list] },
    ],
    ['is removed together with the primary', [ownOf(OVN)], { kind: 'remove', remove: [GATE_FILES.plugin] }],
    [
      'stays with an unreadable primary',
      [file('10-ovn.conf'), ownOf(OVN)],
      { kind: 'keep', problem: /cannot be read/ },
    ],
    ['reports a primary before it', [file('00-a.conf', OVN)], { kind: 'keep', problem: /00-a\.conf sorts before/ }],
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
