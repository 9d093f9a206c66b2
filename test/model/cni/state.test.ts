import assert from 'node:assert/strict';
import { CNI_VERSIONS, gateConflist, MAX_CONF_BYTES } from '../../../model/cni/conflist.ts';
import { formatGateState, type GateState, type ObservedLease } from '../../../model/cni/decide.ts';

const LEASE: ObservedLease = {
  bootId: 'b',
  renewTime: '2026-01-01T00:00:00.000000Z',
  changedAt: 1,
  readAt: 2,
  changes: 3,
};
const STATE: GateState = {
  dpu: 'not-ready',
  reason: 'its lease ran out',
  status: true,
  scope: 'device',
  exempt: ['kube-system'],
  at: 10,
};
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

describe('the gate’s configuration of a large or unusual primary', () => {
  const primary = { cniVersion: '1.0.0', name: 'n', type: 't' };
  const gated = (text: string) => gateConflist('10-p', text);

  it('is made from a text of the greatest length, and none that is longer', () => {
    const longest = JSON.stringify(primary).padEnd(MAX_CONF_BYTES);
    assert.equal(gated(longest).text, gated(JSON.stringify(primary)).text);
    assert.throws(() => gated(`${longest} `), { message: /^10-p: longer than 1048576 characters$/ });
  });

  it('is made for each version that the gate supports', () => {
    for (const cniVersion of CNI_VERSIONS) {
      const { text } = gated(JSON.stringify({ ...primary, cniVersion }));
      assert.equal((JSON.parse(text) as typeof primary).cniVersion, cniVersion);
    }
  });

  const versions: [unknown, string][] = [
    ['0.2.0', '"0.2.0"'],
    [null, 'no text'],
    [{ a: 1 }, 'no text'],
    [1, '1'],
    [undefined, 'undefined'],
  ];
  for (const [cniVersion, shown] of versions) {
    it(`is refused with the version ${shown} and the versions that are supported`, () => {
      assert.throws(() => gated(JSON.stringify({ ...primary, cniVersion })), {
        message: `10-p: cniVersion ${shown}: the gate supports 0.3.0 to 1.1.0`,
      });
    });
  }

  it('is refused for values that are not objects', () => {
    for (const text of ['null', '3', '"x"', '[]'])
      assert.throws(() => gated(text), { message: '10-p: not a JSON object' });
    for (const plugin of [null, 3, [], { type: 3 }, { type: '' }]) {
      assert.throws(() => gated(JSON.stringify({ cniVersion: '1.0.0', name: 'n', plugins: [plugin] })), {
        message: '10-p: a plugin in it has no type',
      });
    }
    for (const name of [undefined, 3, ''])
      assert.throws(() => gated(JSON.stringify({ ...primary, name })), { message: '10-p: it has no name' });
  });

  it('leaves a list of one plugin a list if it has settings of its own', () => {
    const list = { cniVersion: '1.0.0', name: 'n', disableCheck: true, plugins: [{ type: 't' }] };
    const { name, text } = gated(JSON.stringify(list));
    assert.match(name, /\.conflist$/);
    assert.deepEqual(JSON.parse(text), { ...list, plugins: [{ type: 'plumbline-gate', delegate: { type: 't' } }] });
  });

  it('drops a gate without a plugin of its own', () => {
    const plugins = [
      { type: 'plumbline-gate', delegate: 'x' },
      { type: 'plumbline-gate' },
      { type: 't' },
      { type: 'u' },
    ];
    const { text } = gated(JSON.stringify({ cniVersion: '1.0.0', name: 'n', plugins }));
    assert.deepEqual((JSON.parse(text) as { plugins: object[] }).plugins, [
      { type: 'plumbline-gate', delegate: { type: 't' } },
      { type: 'u' },
    ]);
  });
});
