import assert from 'node:assert/strict';
import fc from 'fast-check';
import { ParseError } from '../../../model/errors.ts';
import { parseAttachments, parseRef, refText } from '../../../model/networks/attachments.ts';

const one = (item: object) => parseAttachments(JSON.stringify([item]), 'ns');

describe('multus’s annotation', () => {
  const longest = { name: 'n'.repeat(253), namespace: 's'.repeat(63), interface: 'i'.repeat(15) };
  const items = (count: number) => JSON.stringify(Array.from({ length: count }, () => ({ name: 'a' })));

  for (const [what, text, message] of [
    ['text that only looks like JSON', '[', /it looks like JSON and is not/],
    ['an object', '{"name":"a"}', /: it: expected array/],
    ['an item without a name', '[{"namespace":"x"}]', /: 0\.name: /],
    ['a number as a name', '[{"name":7}]', /: 0\.name: expected string/],
    ['a text instead of a list', '"a"', /: it: expected array/],
    ['a name in upper case', 'A', /must be lower-case letters/],
    ['two slashes', 'a/b/c', /"a\/b\/c" has more than one \/$/],
    ['two interfaces', 'a@b@c', /"a@b@c" has more than one @$/],
    ['129 items', 'a,'.repeat(128), /it has more than 128 items$/],
    ['129 items in JSON', items(129), /it has more than 128 items$/],
    ['100,000 characters', ' '.repeat(100_000), /it has more than 65536 characters$/],
    ['a namespace that is too long', JSON.stringify([{ ...longest, namespace: 's'.repeat(64) }]), /0\.namespace: /],
    ['an interface that is too long', `a@${'i'.repeat(16)}`, /"i{16}" is longer than 15 characters$/],
    ['the same in JSON', JSON.stringify([{ ...longest, interface: 'i'.repeat(16) }]), /is longer than 15 characters$/],
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

  it('has fields from names in another case, as in Go', () =>
    assert.deepEqual(one({ Name: 'a', NAMESPACE: 'b', Interface: 'e1' }), [
      { namespace: 'b', name: 'a', interface: 'e1' },
    ]));

  const addresses: [string, object, boolean][] = [
    ['six bytes', { mac: '02:00:00:aB:cd:ef' }, true],
    ['in groups of four', { mac: '0200.00ab.cdef' }, true],
    ['empty, which is no address', { mac: '' }, true],
    ['an InfiniBand GUID', { 'infiniband-guid': 'c2:11:22:33:44:55:66:77' }, true],
    ['text, of a field in another case', { MAC: 'nonsense' }, false],
    ['mixed separators', { mac: '02:00-00:ab:cd:ef' }, false],
    ['an invalid GUID', { 'infiniband-guid': 'c2' }, false],
  ];
  for (const [what, address, isValid] of addresses) {
    it(`reads an address as multus does: ${what} is ${isValid ? 'accepted' : 'refused'}`, () => {
      if (isValid) assert.deepEqual(one({ name: 'east', ...address }).map(refText), ['ns/east']);
      else assert.throws(() => one({ name: 'east', ...address }), /it is not a MAC address/);
    });
  }

  it('gives the same result in both forms', () => {
    const label = fc.stringMatching(/^[a-z0-9]([-a-z0-9]{0,10}[a-z0-9])?$/);
    const item = fc.record(
      { namespace: label, name: label, interface: fc.option(label, { nil: undefined }) },
      { requiredKeys: ['namespace', 'name'] },
    );
    fc.assert(
      fc.property(fc.array(item, { minLength: 1 }), (list) => {
        const short = list.map(
          ({ namespace, name, interface: device }) => `${namespace}/${name}${device ? `@${device}` : ''}`,
        );
        assert.deepEqual(parseAttachments(short.join(), 'ns'), parseAttachments(JSON.stringify(list), 'ns'));
      }),
    );
  });
});

describe('a reference to a network', () => {
  for (const [text, expected] of [
    ['a', { namespace: 'ns', name: 'a' }],
    ['/a', { namespace: '', name: 'a' }],
  ] as const) {
    it(`is read from ${text}`, () => assert.deepEqual(parseRef(text, 'ns'), expected));
  }
});
