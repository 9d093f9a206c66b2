import assert from 'node:assert/strict';
import { rmSync } from 'node:fs';
import { createServer, type Server, type Socket } from 'node:net';
import { join } from 'node:path';
import fc from 'fast-check';
import { switchConfig } from '../../node-agent/networks/switch-config.ts';
import { connectOvsdb, OvsdbError } from '../../node-agent/ovsdb/connection.ts';
import { followOvsdb } from '../../node-agent/ovsdb/follow.ts';
import { createJsonStream, JsonStreamError } from '../../node-agent/ovsdb/json-stream.ts';
import { applyUpdates, NO_TABLES, type Tables } from '../../node-agent/ovsdb/replica.ts';
import { mapOf, setOf, textOf } from '../../node-agent/ovsdb/values.ts';
import { vector } from '../support/vectors.ts';
import { eventually, tempDirectories } from './support.ts';

interface Exchange {
  readonly request?: { readonly method: string; readonly params: unknown[]; readonly id: number | string };
  readonly reply?: { readonly id: number | string; readonly result?: unknown; readonly error?: unknown };
}
type Updates = Record<string, { method: string; params: unknown[] }[]>;
const samples = vector<Exchange[]>('ovsdb-samples.json');
const updates = vector<Updates[]>('ovsdb-updates.json');

/** The recorded initial reply of monitor_cond_since, its rows as a plain monitor would have sent them. */
function recordedTables(): Tables {
  const reply = samples.find(({ request }) => request?.method === 'monitor_cond_since')!.reply!;
  const [, , initial] = reply.result as [unknown, unknown, Record<string, Record<string, { initial: object }>>];
  const plain = Object.entries(initial).map(([table, rows]) => [
    table,
    Object.fromEntries(Object.entries(rows).map(([id, row]) => [id, { new: row.initial }])),
  ]);
  return applyUpdates(NO_TABLES, Object.fromEntries(plain));
}

describe('OVSDB: the stream of messages', () => {
  const json = fc.letrec((tie) => ({
    value: fc.oneof({ depthSize: 'small' }, fc.string({ unit: 'binary' }), fc.double(), fc.constant(null), tie('list')),
    list: fc.oneof(
      fc.array(tie('value'), { maxLength: 4 }),
      fc.dictionary(fc.string({ unit: 'binary' }), tie('value')),
    ),
  })).list;

  it('any messages, cut anywhere, blank or nothing in between: the same messages', () => {
    const cuts = fc.array(fc.nat(), { maxLength: 20 });
    const blank = fc.constantFrom('', ' ', '\n', '\r\n\t ');
    fc.assert(
      fc.property(fc.array(fc.tuple(json, blank), { maxLength: 6 }), cuts, (messages, at) => {
        const bytes = Buffer.from(messages.map(([message, after]) => JSON.stringify(message) + after).join(''));
        const places = [0, ...at.map((cut) => cut % (bytes.length + 1)).sort((a, b) => a - b), bytes.length];
        const read = createJsonStream();
        const found = places.slice(1).flatMap((end, i) => read(bytes.subarray(places[i], end)));
        assert.deepEqual(
          found,
          messages.map(([message]) => JSON.parse(JSON.stringify(message))),
        );
      }),
    );
  });

  it('every recorded message, byte by byte', () => {
    const read = createJsonStream();
    const text = samples.map((sample) => JSON.stringify(sample)).join('');
    const found = [...Buffer.from(text)].flatMap((byte) => read(Buffer.from([byte])));
    assert.deepEqual(found, samples);
  });

  it('what is no JSON, or too large, is refused', () => {
    assert.throws(() => createJsonStream()(Buffer.from('HTTP/1.1 400')), JsonStreamError);
    assert.throws(() => createJsonStream()(Buffer.from('{"a":}')), JsonStreamError);
    assert.throws(() => createJsonStream(10)(Buffer.from('["aaaaaaaaaaaaaaaa"]')), /larger than 10 bytes/);
  });
});

describe('OVSDB: values and rows', () => {
  const sets: [unknown, readonly unknown[]][] = [
    [undefined, []],
    [['set', []], []],
    ['bare', ['bare']],
    [7, [7]],
    [['uuid', 'u1'], ['u1']],
    [
      [
        'set',
        [
          ['uuid', 'u1'],
          ['uuid', 'u2'],
        ],
      ],
      ['u1', 'u2'],
    ],
  ];
  for (const [value, expected] of sets) {
    it(`the set ${JSON.stringify(value)}`, () => assert.deepEqual(setOf(value), expected));
  }
  it('text and maps', () => {
    assert.deepEqual([textOf('up'), textOf(['set', []]), textOf(undefined)], ['up', '', '']);
    assert.deepEqual([...mapOf(['map', [['a', 'b']]])], [['a', 'b']]);
    assert.deepEqual([mapOf(undefined).size, mapOf('x').size], [0, 0]);
  });

  it('the recorded configuration', () => {
    const config = switchConfig(recordedTables());
    assert.deepEqual(
      [...config.mappings],
      [
        ['physnet', 'br-ex'],
        ['tenant-a', 'br-data'],
        ['tenant-dpdk', 'br-dpdk'],
      ],
    );
    assert.deepEqual(config.encapIps, ['192.168.10.5']);
    assert.equal(config.pmdCpus.toString(), '2-3');
    const names = (bridge: string) => config.bridges.get(bridge)?.interfaces.map(({ name, kind }) => `${kind} ${name}`);
    assert.deepEqual(names('br-data')?.sort(), ['system ens1f0', 'system ens1f1', 'system ens2f0.100']);
    assert.deepEqual(names('br-dpdk')?.sort(), ['dpdk dpdk0', 'dpdk dpdk1']);
    assert.deepEqual(names('br-int'), [], 'a tunnel and an internal interface are no uplinks');
    assert.deepEqual([...(config.bridges.get('br-int')?.internal ?? [])], ['br-int']);
    const dpdk = config.bridges.get('br-dpdk')?.interfaces.find(({ name }) => name === 'dpdk0');
    assert.deepEqual([dpdk?.devargs, dpdk?.numaId], ['0000:3b:00.0', 1]);
  });

  it('recorded updates: a removed key is gone, a changed one changed, an added port there', () => {
    const named = (name: string) =>
      updates.find((one) => name in one)?.[name]?.find(({ method }) => method === 'update');
    const initial = updates.find((one) => 'plain_monitor_reply' in one) as unknown as {
      plain_monitor_reply: { result: unknown };
    };
    let tables = applyUpdates(NO_TABLES, initial.plain_monitor_reply.result);
    const externalIds = () => mapOf([...(tables.get('Open_vSwitch')?.values() ?? [])][0]?.['external_ids']);
    assert.equal(externalIds().get('ovn-encap-type'), 'geneve');
    tables = applyUpdates(tables, named('remove map key')?.params[1]);
    assert.equal(externalIds().has('ovn-encap-type'), false);
    assert.equal(externalIds().get('ovn-encap-ip'), '192.168.10.5');
    tables = applyUpdates(tables, named('change map key')?.params[1]);
    assert.deepEqual(switchConfig(tables).encapIps, ['10.0.0.9']);
    tables = applyUpdates(tables, named('add port to set')?.params[1]);
    const bridge = [...(tables.get('Bridge')?.values() ?? [])].find((row) => textOf(row['name']) === 'br-data');
    assert.equal(setOf(bridge?.['ports']).length, 4);
    const [id = ''] = tables.get('Bridge')?.keys() ?? [];
    assert.equal(
      applyUpdates(tables, { Bridge: { [id]: { old: {} } } })
        .get('Bridge')
        ?.has(id),
      false,
      'deleted',
    );
  });

  const masks: [string, string, boolean][] = [
    ['0xc', '2-3', false],
    ['0XC', '2-3', false],
    ['c', '2-3', false],
    ['0x0', '', false],
    ['', '', false],
    ['000000000000000f', '0-3', false],
    [`1${'0'.repeat(16)}`, '64', false],
    [`1${'0'.repeat(32)}`, '128', false],
    ['zebra', '', true],
  ];
  for (const [mask, cpus, faulty] of masks) {
    it(`pmd-cpu-mask ${JSON.stringify(mask)}: ${cpus || 'none'}`, () => {
      const row = {
        other_config: [
          'map',
          [
            ['dpdk-init', 'true'],
            ['pmd-cpu-mask', mask],
          ],
        ],
      };
      const { pmdCpus, problems } = switchConfig(applyUpdates(NO_TABLES, { Open_vSwitch: { r: { new: row } } }));
      assert.deepEqual([pmdCpus.toString(), problems.length > 0], [cpus, faulty]);
    });
  }

  it('encap addresses may be several, mappings may be faulty, a mask without polling is none', () => {
    const externalIds = [
      ['ovn-encap-ip', '10.0.0.1, 10.0.1.1'],
      ['ovn-bridge-mappings', 'a:br-a,,b,c:'],
    ];
    const row = { external_ids: ['map', externalIds], other_config: ['map', [['pmd-cpu-mask', '0xc']]] };
    const config = switchConfig(applyUpdates(NO_TABLES, { Open_vSwitch: { r: { new: row } } }));
    assert.deepEqual(config.encapIps, ['10.0.0.1', '10.0.1.1']);
    assert.deepEqual([...config.mappings], [['a', 'br-a']]);
    assert.equal(config.problems.length, 2);
    assert.equal(config.pmdCpus.toString(), '');
  });
});

describe('OVSDB: a connection', () => {
  const temp = tempDirectories();
  let socketPath: string;
  let server: Server;
  let sockets: Socket[];
  let received: string;
  let stop: AbortController;
  /** What the server does with what it is sent. */
  let answer: (socket: Socket, message: { id: number; method?: string; params: unknown[] }) => void;

  const listen = () =>
    new Promise<void>((resolve) => {
      server = createServer((socket) => {
        sockets.push(socket);
        const read = createJsonStream();
        socket.on('error', () => {});
        socket.on('data', (chunk) => {
          received += chunk.toString();
          for (const message of read(chunk)) answer(socket, message as never);
        });
      });
      server.listen(socketPath, resolve);
    });
  const close = () => {
    for (const socket of sockets) socket.destroy();
    server.close();
  };
  beforeEach(async () => {
    socketPath = join(temp(), 'db.sock');
    sockets = [];
    received = '';
    stop = new AbortController();
    answer = (socket, { id }) => socket.write(JSON.stringify({ id, result: ['Open_vSwitch'], error: null }));
    await listen();
  });
  afterEach(() => {
    stop.abort();
    close();
  });
  const connect = (onNotification = () => {}) => connectOvsdb({ socketPath, onNotification, signal: stop.signal });

  it('calls, and answers echo', async () => {
    const connection = connect();
    assert.deepEqual(await connection.call('list_dbs', []), ['Open_vSwitch']);
    received = '';
    sockets[0]?.write('{"id":"echo","method":"ec');
    await new Promise((resolve) => setTimeout(resolve, 20));
    sockets[0]?.write('ho","params":["hi"]}{"id":"echo","method":"echo","params":[]}');
    await eventually(() => received.includes('"result":[]'), 'both answered');
    assert.match(
      received,
      /^\{"id":"echo","result":\["hi"\],"error":null\}\{"id":"echo","result":\[\],"error":null\}$/,
    );
  });

  it('errors of the server, with its text; without `result` as it writes them', async () => {
    answer = (socket, { id }) => socket.write(JSON.stringify({ id, error: 'unknown method' }));
    await assert.rejects(connect().call('bogus', []), (error) => {
      return error instanceof OvsdbError && /unknown method/.test(error.message) && error.message.includes(socketPath);
    });
  });

  it('ends with the server; a call under way is told', async () => {
    answer = (socket) => socket.destroy();
    const connection = connect();
    await assert.rejects(connection.call('monitor', []), /closed the connection/);
    await assert.rejects(connection.ended, OvsdbError);
    await assert.rejects(connection.call('list_dbs', []), /has ended/);
  });

  it('what is no JSON ends it', async () => {
    answer = (socket) => socket.write('nonsense');
    await assert.rejects(connect().call('list_dbs', []), /not JSON-RPC/);
  });

  it('follows: at first and after each change, and again after the server was away', async () => {
    const row = (ip: string) => ({ Open_vSwitch: { r: { new: { external_ids: ['map', [['ovn-encap-ip', ip]]] } } } });
    answer = (socket, { id }) => socket.write(JSON.stringify({ id, result: row('10.0.0.1'), error: null }));
    const seen: string[] = [];
    const problems: string[] = [];
    const done = followOvsdb(
      {
        socketPath,
        onTables: (tables) => seen.push(switchConfig(tables).encapIps.join()),
        onProblem: (error) => problems.push(error.message),
      },
      stop.signal,
    );
    await eventually(() => seen.at(-1) === '10.0.0.1', 'the first');
    const update = { id: null, method: 'update', params: ['plumbline', row('10.0.0.2')] };
    sockets[0]?.write(JSON.stringify(update) + JSON.stringify({ ...update, params: ['plumbline', row('10.0.0.3')] }));
    await eventually(() => seen.at(-1) === '10.0.0.3', 'the change');
    close();
    await eventually(() => problems.length > 0, 'it is said');
    rmSync(socketPath, { force: true });
    await listen();
    await eventually(() => seen.at(-1) === '10.0.0.1', 'followed again', 3);
    stop.abort();
    await done;
  });
});
