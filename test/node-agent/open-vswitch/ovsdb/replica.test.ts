import assert from 'node:assert/strict';
import { JsonStream } from '../../../../node-agent/open-vswitch/ovsdb/json-stream.ts';
import { mapOf, OvsdbReplica, rowsOf, setOf } from '../../../../node-agent/open-vswitch/ovsdb/replica.ts';

describe('values of OVSDB, including unknown forms', () => {
  const sets: [unknown, readonly unknown[]][] = [
    [undefined, []],
    [7, [7]],
    [true, [true]],
    [false, [false]],
    [[], []],
    [['set', 'no list'], []],
    [['set'], []],
    [
      ['set', [1, true, 'x', ['uuid', 'u']]],
      [1, true, 'x', 'u'],
    ],
    [['uuid', 5], ['5']],
    [['other', 'u'], []],
  ];
  it('the elements of a set', () => {
    for (const [value, elements] of sets) assert.deepEqual(setOf(value), elements, JSON.stringify(value));
  });

  const maps: [unknown, [string, string][]][] = [
    [['map', []], []],
    [['map', 'x'], []],
    [['map'], []],
    [['set', [['a', 'b']]], []],
    [null, []],
    [
      ['map', [['a', 1], ['b'], ['c', 'd', 'e'], 'fg', ['h', true]]],
      [
        ['a', '1'],
        ['h', 'true'],
      ],
    ],
  ];
  it('the pairs of a map', () => {
    for (const [value, pairs] of maps) assert.deepEqual([...mapOf(value)], pairs, JSON.stringify(value));
  });
});

describe('the message stream', () => {
  const bytes = (text: string) => Buffer.from(text);
  it('refuses more elements than fit the agent’s heap as they come, before parsing', () => {
    const full = `[${'{},'.repeat(131_071)}{}]`;
    assert.equal(new JsonStream().read(Buffer.from(full + full)).length, 2);
    assert.throws(() => new JsonStream().read(Buffer.from(`${full.slice(0, -1)},`)), /larger than 262144 elements/);
    assert.equal(new JsonStream().read(Buffer.from(`["${','.repeat(300_000)}"]`)).length, 1, 'text is one element');
  });

  it('a value of exactly the limit is read, in one piece or two; a longer one is refused before its end', () => {
    assert.deepEqual(new JsonStream(10).read(bytes('["123456"]')), [['123456']]);
    const stream = new JsonStream(10);
    assert.deepEqual([stream.read(bytes('["123')), stream.read(bytes('456"]'))], [[], [['123456']]]);
    assert.throws(() => new JsonStream(10).read(bytes('["123456789')), /one value is larger than 10 bytes/);
  });

  it('64 levels are read; brackets in texts and closed brackets do not count', () => {
    const deep = (levels: number) => '['.repeat(levels) + ']'.repeat(levels);
    assert.equal(new JsonStream().read(bytes(deep(64) + deep(64))).length, 2);
    assert.equal(new JsonStream().read(bytes(`["${'['.repeat(100)}"]`)).length, 1);
    assert.throws(() => new JsonStream().read(bytes(deep(65))), /is not JSON-RPC: more than 64 levels of brackets/);
  });

  it('only blanks may separate values; another byte is refused and named', () => {
    assert.deepEqual(new JsonStream().read(bytes(' \t\r\n[1]\n {} ')), [[1], {}]);
    for (const [text, byte] of Object.entries({ '"x"': 34, ']': 93, '}': 125, '[1]7': 55 })) {
      const message = new RegExp(`expected the beginning of an object, found byte ${byte}$`);
      assert.throws(() => new JsonStream().read(bytes(text)), { message });
    }
  });

  it('a value that is not JSON is refused with the shortened reason of the parser', () => {
    const read = () => new JsonStream().read(bytes(`[${'x'.repeat(300)}]`));
    assert.throws(read, { code: 'ovsdb-protocol', message: /^the stream is not JSON-RPC: .{1,120}$/ });
    assert.throws(read, ({ cause }: Error) => cause instanceof SyntaxError);
  });
});

describe('the limits of the copied tables', () => {
  const COLUMNS = { A: ['x', 'y'], B: ['x'] };
  const row = (x: string) => ({ insert: { x } });

  it('rows of all tables count; one more than the limit is refused', () => {
    const limits = { rows: 2, characters: 1000 };
    const replica = new OvsdbReplica(COLUMNS, limits);
    replica.apply({ A: { a: row('1') }, B: { a: row('2') } });
    assert.throws(() => replica.apply({ B: { b: row('3') } }), {
      name: 'ReplicaError',
      code: 'ovsdb-replica',
      message: 'Open vSwitch has more than 2 rows of bridges, ports and interfaces; networks are not located',
    });
    const other = new OvsdbReplica(COLUMNS, limits);
    other.apply({ A: { a: row('1'), b: row('2') } });
    other.apply({ A: { a: { delete: null } } });
    other.apply({ A: { c: row('3') } });
    assert.deepEqual([...rowsOf(other.tables, 'A').keys()], ['b', 'c']);
    assert.equal(rowsOf(replica.tables, 'C').size, 0);
  });

  it('characters count up to the limit: a changed row once, a removed row no more, an unknown one not at all', () => {
    // {"x":"1234"} has 12 characters.
    const replica = new OvsdbReplica(COLUMNS, { rows: 10, characters: 12 });
    replica.apply({ A: { a: row('1234') } });
    replica.apply({ A: { a: row('5678') } });
    const message = 'Open vSwitch has more than 12 characters of configuration; networks are not located';
    assert.throws(() => replica.apply({ A: { a: row('12345') } }), { name: 'ReplicaError', message });
    replica.apply({ A: { a: { delete: null }, b: {} } });
    replica.apply({ A: { b: row('1234') } });
    assert.deepEqual([...rowsOf(replica.tables, 'A')], [['b', { x: '1234' }]]);
  });

  it('an empty update changes nothing; another form is refused with the table’s name', () => {
    const replica = new OvsdbReplica(COLUMNS);
    replica.apply(undefined);
    replica.apply(null);
    assert.equal(replica.tables.size, 0);
    assert.throws(() => replica.apply('x'), /^ReplicaError: an update is not an object$/);
    assert.throws(() => replica.apply({ A: [] }), /^ReplicaError: an update of A is not an object$/);
    assert.throws(() => replica.apply({ B: { a: { insert: 'x' } } }), /^ReplicaError: a row of B is not an object$/);
  });

  const uuids = (...ids: string[]) => (ids.length === 1 ? ['uuid', ids[0]] : ['set', ids.map((id) => ['uuid', id])]);
  const map = (...pairs: [string, string][]) => ['map', pairs];
  const modifications: [what: string, column: string, before: unknown, difference: unknown, after: unknown][] = [
    ['an added pair', 'options', map(['a', '1']), map(['b', '2']), map(['a', '1'], ['b', '2'])],
    ['a changed pair', 'options', map(['a', '1'], ['b', '2']), map(['a', '3']), map(['a', '3'], ['b', '2'])],
    ['a removed pair', 'options', map(['a', '1'], ['b', '2']), map(['a', '1']), map(['b', '2'])],
    ['the last pair removed', 'options', map(['a', '1']), map(['a', '1']), map()],
    ['a pair in an absent map', 'options', undefined, map(['a', '1']), map(['a', '1'])],
    ['ids added and removed', 'ports', uuids('p'), uuids('p', 'q'), ['set', [['uuid', 'q']]]],
    ['the only id removed', 'ports', uuids('p'), uuids('p'), ['set', []]],
    ['another text', 'name', 'x', 'y', 'y'],
    ['a text removed', 'name', 'x', ['set', []], ['set', []]],
  ];
  for (const [what, column, before, difference, after] of modifications) {
    it(`a modified row has ${what}, and its other columns`, () => {
      const replica = new OvsdbReplica({ A: ['other', column] });
      replica.apply({ A: { a: { initial: { other: 1, ...(before !== undefined && { [column]: before }) } } } });
      replica.apply({ A: { a: { modify: { [column]: difference } } } });
      assert.deepEqual(rowsOf(replica.tables, 'A').get('a'), { other: 1, [column]: after });
    });
  }

  it('only the requested tables and columns are kept', () => {
    const replica = new OvsdbReplica(COLUMNS);
    replica.apply({ A: { a: { insert: { y: 1, z: 2 } }, b: { insert: {} } }, Secret: { s: { insert: {} } } });
    assert.deepEqual([...replica.tables.keys()], ['A']);
    assert.deepEqual(Object.fromEntries(rowsOf(replica.tables, 'A')), { a: { y: 1 }, b: {} });
  });
});
