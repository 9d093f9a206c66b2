import assert from 'node:assert/strict';
import { ParseError } from '../../../model/errors.ts';
import { parseAttachments, parseRef, refText } from '../../../model/networks/attachments.ts';

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
  for (const [text, expected] of [
    ['a', { namespace: 'ns', name: 'a' }],
    ['/a', { namespace: '', name: 'a' }],
  ] as const) {
    it(`is read from ${text}`, () => assert.deepEqual(parseRef(text, 'ns'), expected));
  }
});
