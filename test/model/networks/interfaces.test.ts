import assert from 'node:assert/strict';
import { ParseError } from '../../../model/errors.ts';
import { DEFAULT_NETWORK_ANNOTATION, NETWORKS_ANNOTATION, refText } from '../../../model/networks/attachments.ts';
import { type InterfaceSources, interfacesOf, parseAffinities } from '../../../model/networks/interfaces.ts';
import type { VmiShape } from '../../../model/shapes.ts';

const names = (sources: Omit<InterfaceSources, 'namespace'>, namespace = 'ns') =>
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
  for (const [what, sources, expected] of [
    [
      'multus’s annotation',
      { pod: podOn('', { [DEFAULT_NETWORK_ANNOTATION]: 'infra/fast' }), vmi, primary },
      ['default=infra/fast'],
    ],
    ['the namespace’s primary network', { vmi, primary }, ['default=ns/udn']],
    [
      'the VMI',
      { vmi: guest({ name: 'main', multus: { networkName: 'infra/fast', default: true } }) },
      ['main=infra/fast'],
    ],
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
