import assert from 'node:assert/strict';
import fc from 'fast-check';
import { ArgsError } from '../../../scheduler-plugin/wire/args-error.ts';
import { NameIndex, UNKNOWN } from '../../../scheduler-plugin/wire/name-index.ts';
import { NameScanner, nameAt } from '../../../scheduler-plugin/wire/scanned-names.ts';

const scan = (text: string, index: NameIndex, from = 0) => {
  const scanner = new NameScanner();
  const names = scanner.scan(Buffer.from(text), from, index);
  return { ids: [...names.ids.subarray(0, names.count)], names, end: scanner.end };
};
const indexOf = (names: readonly string[]) => {
  const index = new NameIndex();
  for (const name of names) index.add(name);
  return index;
};
const nodeName = fc.stringMatching(/^[a-z0-9]([-a-z0-9.]{0,40}[a-z0-9])?$/);

describe('names in a request', () => {
  it('are found as bytes, for any length and position', () => {
    fc.assert(
      fc.property(
        fc.uniqueArray(nodeName, { maxLength: 40 }),
        fc.array(fc.oneof(nodeName, fc.string())),
        (known, more) => {
          const index = indexOf(known);
          const asked = [...known, ...more, ...known].sort((a, b) => a.length - b.length);
          const { ids, names } = scan(`${JSON.stringify(asked)}}  `, index);
          assert.deepEqual(
            ids,
            asked.map((name) => index.find(name)),
          );
          asked.forEach((name, k) => void assert.equal(nameAt(names, k), name));
        },
      ),
      { numRuns: 500 },
    );
  });

  it('keep their numbers while other names are added and removed', () => {
    const change = fc.record({ name: fc.nat(60), add: fc.boolean() });
    fc.assert(
      fc.property(fc.array(change, { maxLength: 300 }), (changes) => {
        const index = new NameIndex();
        const naive = new Map<string, number>();
        for (const { name: number, add } of changes) {
          const name = `node-${number}.${'x'.repeat(number)}`;
          if (add) {
            const id = index.add(name);
            assert.equal(naive.get(name) ?? id, id);
            assert.ok(naive.has(name) || ![...naive.values()].includes(id), 'no two names have one number');
            naive.set(name, id);
          } else {
            index.remove(name);
            naive.delete(name);
          }
        }
        const all = Array.from({ length: 61 }, (_, i) => `node-${i}.${'x'.repeat(i)}`);
        const expected = all.map((name) => naive.get(name) ?? UNKNOWN);
        assert.deepEqual(scan(`${JSON.stringify(all)}   `, index).ids, expected);
        assert.equal(index.count, naive.size);
      }),
    );
  });

  it('free their numbers for other names when they are removed', () => {
    const index = indexOf(['a', 'b', 'c']);
    const number = index.find('b');
    index.remove('b');
    assert.deepEqual([index.find('b'), index.nameOf(number), index.count, index.size], [UNKNOWN, undefined, 2, 3]);
    assert.equal(index.add('d'), number);
    assert.deepEqual([index.nameOf(number), index.count, index.size], ['d', 3, 3]);
    assert.deepEqual(
      scan('["a","b","c","d"] ', index).ids,
      ['a', 'b', 'c', 'd'].map((name) => index.find(name)),
    );
    for (let i = 0; i < 1000; i++) {
      const id = index.add(`node-${i}`);
      assert.ok(id <= 3, `${id}`);
      index.remove(`node-${i}`);
    }
    assert.equal(index.size, 4);
  });

  it('are distinct if they differ in a digit or two', () => {
    const index = new NameIndex();
    const patterns = [
      (i: number) => `worker-${i}.east.example.internal`,
      (i: number) => `ip-10-${i >> 8}-${i & 255}-7`,
      (i: number) => `r${String(i % 100).padStart(2, '0')}-u${String(Math.floor(i / 100)).padStart(3, '0')}`,
    ];
    const names = patterns.flatMap((pattern) => Array.from({ length: 20_000 }, (_, i) => pattern(i)));
    const half = names.filter((_, i) => i % 2 === 0);
    for (const name of half) index.add(name);
    const { ids } = scan(`${JSON.stringify(names)}   `, index);
    names.forEach((name, i) => void assert.equal(ids[i], index.find(name)));
  });

  it('may have white space around them', () => {
    const index = indexOf(['a', 'b']);
    const text = ' [ "a" ,\r\n\t"b" ,"c" ] ';
    assert.deepEqual(scan(text, index, 1).ids, [index.find('a'), index.find('b'), UNKNOWN]);
    assert.equal(scan(text, index, 1).end, text.length - 1);
    assert.deepEqual(scan('[]', index).ids, []);
    assert.deepEqual(scan('[ ]', index).ids, []);
  });

  const broken = ['', '{}', '[', '["a"', '["a",', '["a",]', '["a" "b"]', '[1]', '["a",2]', '["a\\"]', '["a', '["\\'];
  for (const text of broken) {
    it(`are refused if they are not an array of strings: ${text}`, () => {
      assert.throws(() => scan(text, indexOf(['a'])), ArgsError);
    });
  }
});
