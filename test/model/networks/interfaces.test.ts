import assert from 'node:assert/strict';
import { ParseError } from '../../../model/errors.ts';
import {
  DEFAULT_NETWORK_ANNOTATION,
  NETWORKS_ANNOTATION,
  parseAttachments,
  parseRef,
  refText,
} from '../../../model/networks/attachments.ts';
import { interfacesOf, parseAffinities } from '../../../model/networks/interfaces.ts';
import type { VmiShape } from '../../../model/shapes.ts';

const names = (sources: Omit<Parameters<typeof interfacesOf>[0], 'namespace'>, namespace = 'ns') =>
  interfacesOf({ namespace, ...sources }).map(({ name, ref }) => `${name}=${ref ? refText(ref) : 'pod'}`);
const podOn = (networks: string, more: Record<string, string> = {}) => ({
  metadata: { annotations: { [NETWORKS_ANNOTATION]: networks, ...more } },
  spec: {},
});
const guest = (...networks: NonNullable<VmiShape['spec']['networks']>) => ({ spec: { networks } });
const on = (name: string, networkName: string) => ({ name, multus: { networkName } });
describe('interfaces', () => {
  it('W13: keep duplicate attachments apart, in the VMI’s order, and injected ones with their own name', () => {
    const vmi = guest(on('a', 'net'), on('b', 'other/net'), on('c', 'ns/net'), on('d', 'unplugged'));
    const pod = podOn('net@podaaa,other/net@podbbb,net@podccc,mesh@mesh0,last');
    assert.deepEqual(names({ pod, vmi }), ['a=ns/net', 'b=other/net', 'c=ns/net', 'mesh0=ns/mesh', 'net5=ns/last']);
  });

  const primary = { namespace: 'ns', name: 'udn' };
  const vmi = guest({ name: 'default', pod: {} });
  const chosen = podOn('', { [DEFAULT_NETWORK_ANNOTATION]: 'infra/fast' });
  const own = guest({ name: 'main', multus: { networkName: 'infra/fast', default: true } });
  for (const [what, sources, expected] of [
    ['multus’s annotation', { pod: chosen, vmi, primary }, ['default=infra/fast']],
    ['the namespace’s primary network', { vmi, primary }, ['default=ns/udn']],
    ['the VMI', { vmi: own }, ['main=infra/fast']],
    ['the cluster, for an ordinary pod', { pod: podOn('net') }, ['eth0=pod', 'net1=ns/net']],
    ['nothing, on the host’s network', { pod: { metadata: {}, spec: { hostNetwork: true } } }, []],
  ] as const) {
    it(`have the default network from ${what}`, () => assert.deepEqual(names(sources), expected));
  }

  it('are refused for more networks than a VM can have', () => {
    const many = Array.from({ length: 129 }, (_, i) => ({ name: `n${i}`, pod: {} }));
    assert.throws(() => names({ vmi: guest(...many) }), ParseError);
  });
});
describe('affinity', () => {
  it('reads preferences by name', () => {
    const affinities = parseAffinities('{"dpdk-east":"required","mgmt":"none","x":"preferred"}');
    assert.deepEqual(Object.fromEntries(affinities), { 'dpdk-east': 'required', mgmt: 'none', x: 'preferred' });
    assert.equal(parseAffinities(' ').size, 0);
    assert.equal(parseAffinities('{"__proto__":"required"}').get('__proto__'), 'required');
  });

  const many = (count: number) =>
    JSON.stringify(Object.fromEntries(Array.from({ length: count }, (_, i) => [i, 'none'])));

  for (const [what, text, message] of [
    ['no JSON', 'required', /not JSON/],
    ['a list', '["a"]', /object/],
    ['an unknown value', '{"a":"strict"}', /"a" has the value "strict"; expected one of required, preferred, none/],
    ['257 names', many(257), /more than 256 names/],
    ['more than 16 KiB', '{}'.padEnd(16 * 1024 + 1), /more than 16384 characters/],
  ] as const) {
    it(`is refused with ${what}, in a short message`, () =>
      assert.throws(
        () => parseAffinities(text),
        (error) => error instanceof ParseError && message.test(error.message) && error.message.length < 500,
      ));
  }
});

const one = (item: object) => parseAttachments(JSON.stringify([item]), 'ns');
describe('multus’s annotation', () => {
  const longest = { name: 'n'.repeat(253), namespace: 's'.repeat(63), interface: 'i'.repeat(15) };
  const items = (count: number) => JSON.stringify(Array.from({ length: count }, () => ({ name: 'a' })));

  for (const [what, text, message] of [
    ['text that only looks like JSON', '[', /it looks like JSON and is not/],
    ['a number as a name', '[{"name":7}]', /: 0\.name: expected string/],
    ['a name in upper case', 'A', /must be lower-case letters/],
    ['129 items', 'a,'.repeat(128), /it has more than 128 items$/],
    ['a namespace that is too long', JSON.stringify([{ ...longest, namespace: 's'.repeat(64) }]), /0\.namespace: /],
    ['an interface that is too long', `a@${'i'.repeat(16)}`, /"i{16}" is longer than 15 characters$/],
  ] as const) {
    it(`is refused with ${what}, in a short message`, () =>
      assert.throws(
        () => parseAttachments(text, 'ns'),
        (error) => error instanceof ParseError && message.test(error.message) && error.message.length < 500,
      ));
  }

  it('is read up to 128 items, 64 KiB, and names as long as in the API server', () => {
    for (const text of ['a,'.repeat(127), items(128)]) assert.equal(parseAttachments(text, 'ns').length, 128);
    assert.equal(parseAttachments('a'.padEnd(64 * 1024), 'ns').length, 1);
    assert.deepEqual(one(longest), [longest]);
    assert.deepEqual([parseAttachments('', 'ns'), parseAttachments(' ', 'ns')], [[], []]);
  });

  for (const field of ['namespace', 'interface', 'mac', 'infiniband-guid']) {
    it(`has an absent ${field} if that is null, as in Go`, () =>
      assert.deepEqual(one({ name: 'a', [field]: null }), [{ namespace: 'ns', name: 'a' }]));
  }

  const addresses: [string, object, boolean][] = [
    ['in groups of four', { mac: '0200.00ab.cdef' }, true],
    ['empty, which is no address', { mac: '' }, true],
    ['text, of a field in another case', { MAC: 'nonsense' }, false],
    ['an invalid GUID', { 'infiniband-guid': 'c2' }, false],
  ];
  for (const [what, address, isValid] of addresses) {
    it(`reads an address as multus does: ${what} is ${isValid ? 'accepted' : 'refused'}`, () => {
      if (isValid) assert.deepEqual(one({ name: 'east', ...address }).map(refText), ['ns/east']);
      else assert.throws(() => one({ name: 'east', ...address }), /it is not a MAC address/);
    });
  }
});
describe('a reference to a network', () => {
  it('has the namespace of its pod, if it names none', () => {
    assert.deepEqual(
      ['a', '/a'].map((text) => parseRef(text, 'ns').namespace),
      ['ns', ''],
    );
  });
});
