import assert from 'node:assert/strict';
import { rmSync } from 'node:fs';
import { createServer, type Server, type Socket } from 'node:net';
import { join } from 'node:path';
import fc from 'fast-check';
import { switchConfig } from '../../../node-agent/networks/switch-config.ts';
import { COLUMNS, connectOvsdb, followOvsdb, OvsdbError } from '../../../node-agent/open-vswitch/ovsdb/follow.ts';
import { createJsonStream, JsonStreamError } from '../../../node-agent/open-vswitch/ovsdb/json-stream.ts';
import {
  createReplica,
  mapOf,
  ReplicaError,
  setOf,
  type Tables,
  textOf,
} from '../../../node-agent/open-vswitch/ovsdb/replica.ts';
import { vector } from '../../support/vectors.ts';
import { eventually, tempDirectories } from '../support.ts';

interface Exchange {
  readonly request?: { readonly method: string; readonly params: unknown[]; readonly id: number | string };
  readonly reply?: { readonly id: number | string; readonly result?: unknown; readonly error?: unknown };
}
type Updates = Record<string, { method: string; params: unknown[] }[]>;
const samples = vector<Exchange[]>('ovsdb-samples.json');
const updates = vector<Updates[]>('ovsdb-updates.json');

const tablesOf = (updates: unknown): Tables => {
  const replica = createReplica(COLUMNS);
  replica.apply(updates);
  return replica.tables;
};

/** The recorded initial reply of monitor_cond_since. */
function recordedTables(): Tables {
  const reply = samples.find(({ request }) => request?.method === 'monitor_cond_since')!.reply!;
  const [, , initial] = reply.result as [unknown, unknown, unknown];
  return tablesOf(initial);
}

describe('OVSDB: the message stream', () => {
  const json = fc.letrec((tie) => ({
    value: fc.oneof({ depthSize: 'small' }, fc.string({ unit: 'binary' }), fc.double(), fc.constant(null), tie('list')),
    list: fc.oneof(
      fc.array(tie('value'), { maxLength: 4 }),
      fc.dictionary(fc.string({ unit: 'binary' }), tie('value')),
    ),
  })).list;

  it('gives the same messages wherever it is cut, with or without blanks', () => {
    const cuts = fc.array(fc.nat(), { maxLength: 20 });
    const blank = fc.constantFrom('', ' ', '\n', '\r\n\t ');
    fc.assert(
      fc.property(fc.array(fc.tuple(json, blank), { maxLength: 6 }), cuts, (messages, at) => {
        const bytes = Buffer.from(messages.map(([message, after]) => JSON.stringify(message) + after).join(''));
        const places = [0, ...at.map((cut) => cut % (bytes.length + 1)).sort((a, b) => a - b), bytes.length];
        const read = createJsonStream();
        const values = places.slice(1).flatMap((end, i) => read(bytes.subarray(places[i], end)));
        assert.deepEqual(
          values,
          messages.map(([message]) => JSON.parse(JSON.stringify(message))),
        );
      }),
    );
  });

  it('reads every recorded message byte by byte', () => {
    const read = createJsonStream();
    const text = samples.map((sample) => JSON.stringify(sample)).join('');
    const values = [...Buffer.from(text)].flatMap((byte) => read(Buffer.from([byte])));
    assert.deepEqual(values, samples);
  });

  it('holds 1 MiB in pieces of one byte only once: it keeps no piece and copies each byte at most twice', () => {
    const bytes = Buffer.from(`["${'x'.repeat(1024 * 1024)}"]`);
    let copied = 0;
    const { copy } = Buffer.prototype;
    Buffer.prototype.copy = function (this: Buffer, ...args: Parameters<typeof copy>) {
      const count = copy.apply(this, args);
      copied += count;
      return count;
    };
    try {
      const read = createJsonStream();
      global.gc?.();
      const before = process.memoryUsage();
      let values: unknown[] = [];
      // Each in its own buffer, as from a socket.
      for (let i = 0; i < bytes.length; i++) values = read(Buffer.from([bytes[i] as number]));
      const { heapUsed, external } = process.memoryUsage();
      assert.equal(values.length, 1);
      assert.ok(copied < 4 * bytes.length, `${copied} bytes copied for ${bytes.length}`);
      assert.ok(heapUsed + external - before.heapUsed - before.external < 64 * 1024 * 1024);
    } finally {
      Buffer.prototype.copy = copy;
    }
  });

  it('refuses too many levels as they open, before parsing', () => {
    assert.equal(createJsonStream()(Buffer.from('['.repeat(64) + ']'.repeat(64))).length, 1);
    assert.throws(() => createJsonStream()(Buffer.from('['.repeat(65))), /more than 64 levels/);
  });

  it('refuses more elements than fit the agent’s heap as they come, before parsing', () => {
    const full = `[${'{},'.repeat(131_071)}{}]`;
    assert.equal(createJsonStream()(Buffer.from(full + full)).length, 2);
    assert.throws(() => createJsonStream()(Buffer.from(`${full.slice(0, -1)},`)), /larger than 262144 elements/);
    assert.equal(createJsonStream()(Buffer.from(`["${','.repeat(300_000)}"]`)).length, 1, 'text is one element');
  });

  it('refuses a value of more than 4 MiB before its end', () => {
    const read = createJsonStream();
    const chunk = Buffer.alloc(1024 * 1024, 0x78);
    read(Buffer.from('["'));
    assert.throws(() => {
      for (let i = 0; i < 5; i++) read(chunk);
    }, /larger than 4194304 bytes/);
  });

  it('refuses text that is not JSON or too large', () => {
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

  it('the recorded configuration is read', () => {
    const config = switchConfig(recordedTables());
    assert.deepEqual(
      [...config.mappings],
      [
        ['physnet', ['br-ex']],
        ['tenant-a', ['br-data']],
        ['tenant-dpdk', ['br-dpdk']],
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

  it('recorded updates remove a key, change a value and add a port', () => {
    const named = (name: string) =>
      updates.find((one) => name in one)?.[name]?.find(({ method }) => method === 'update2');
    const initial = updates.find((one) => 'monitor_cond_reply' in one) as unknown as {
      monitor_cond_reply: { result: unknown };
    };
    const { apply, tables } = createReplica(COLUMNS);
    apply(initial.monitor_cond_reply.result);
    const externalIds = () => mapOf([...(tables.get('Open_vSwitch')?.values() ?? [])][0]?.['external_ids']);
    assert.equal(externalIds().get('ovn-encap-type'), 'geneve');
    apply(named('remove map key')?.params[1]);
    assert.equal(externalIds().has('ovn-encap-type'), false);
    assert.equal(externalIds().get('ovn-encap-ip'), '192.168.10.5');
    apply(named('change map key')?.params[1]);
    assert.deepEqual(switchConfig(tables).encapIps, ['10.0.0.9']);
    apply(named('add port to set')?.params[1]);
    const bridge = [...(tables.get('Bridge')?.values() ?? [])].find((row) => textOf(row['name']) === 'br-data');
    assert.equal(setOf(bridge?.['ports']).length, 4);
    const [id = ''] = tables.get('Bridge')?.keys() ?? [];
    apply({ Bridge: { [id]: { delete: null } } });
    assert.equal(tables.get('Bridge')?.has(id), false, 'deleted');
  });

  it('tables and columns that were not requested are ignored', () => {
    const tables = tablesOf({
      Open_vSwitch: { r: { insert: { external_ids: 'x', manager_options: 'y' } } },
      Secret: { s: { insert: {} } },
    });
    assert.deepEqual([...tables.keys()], ['Open_vSwitch']);
    assert.deepEqual(tables.get('Open_vSwitch')?.get('r'), { external_ids: 'x' });
  });

  it('more rows or more text than a node can have are refused in a short message', () => {
    const row = (name: string) => ({ insert: { name } });
    const many = Object.fromEntries(Array.from({ length: 33_000 }, (_, i) => [`u${i}`, row('p')]));
    assert.throws(
      () => tablesOf({ Interface: many }),
      /more than 32768 rows of bridges, ports and interfaces; networks are not located/,
    );
    const { apply } = createReplica(COLUMNS, { rows: 100, characters: 1000 });
    apply({ Interface: { a: row('x'.repeat(900)) } });
    // The same row again adds nothing, and a removed row frees its text.
    for (let i = 0; i < 10; i++) apply({ Interface: { a: row('y'.repeat(900)) } });
    apply({ Interface: { a: {} } });
    apply({ Interface: { b: row('x'.repeat(900)) } });
    assert.throws(() => apply({ Interface: { c: row('x'.repeat(900)) } }), ReplicaError);
  });

  it('updates of another form cause one short message, however many rows are wrong', () => {
    const wrong = Object.fromEntries(Array.from({ length: 10_000 }, (_, i) => [`u${i}`, { insert: 'x'.repeat(100) }]));
    for (const updates of [[], 'x', { Bridge: [] }, { Bridge: wrong }]) {
      assert.throws(
        () => tablesOf(updates),
        (error) => error instanceof ReplicaError && error.message.length < 200,
      );
    }
  });

  it('an update visits only its own rows, however many rows exist', () => {
    const { apply, tables } = createReplica(COLUMNS);
    const names = Object.fromEntries(
      Array.from({ length: 20_000 }, (_, i) => [`u${i}`, { insert: { name: `p${i}` } }]),
    );
    apply({ Interface: names });
    let visited = 0;
    const { set } = Map.prototype;
    Map.prototype.set = function (this: Map<unknown, unknown>, ...args: [unknown, unknown]) {
      visited++;
      return set.apply(this, args);
    };
    try {
      for (let i = 0; i < 100; i++) apply({ Interface: { u7: { insert: { name: `q${i}` } } } });
    } finally {
      Map.prototype.set = set;
    }
    assert.ok(visited <= 400, `${visited} rows were touched by 100 updates of one row`);
    assert.deepEqual(tables.get('Interface')?.get('u7'), { name: 'q99' });
  });

  it('each row is visited once, even if lists name the same ports repeatedly', () => {
    const refs = ['set', Array.from({ length: 2000 }, () => ['uuid', 'port'])];
    const bridges = Object.fromEntries(
      Array.from({ length: 100 }, (_, i) => [`b${i}`, { insert: { name: `br${i}`, ports: refs } }]),
    );
    const interfaces = ['set', Array.from({ length: 2000 }, (_, i) => ['uuid', `i${i % 1000}`])];
    const tables = tablesOf({
      Bridge: bridges,
      Port: { port: { insert: { name: 'p', interfaces } } },
      Interface: Object.fromEntries(Array.from({ length: 1000 }, (_, i) => [`i${i}`, { insert: { name: `e${i}` } }])),
    });
    let looked = 0;
    const counting = new Map(tables);
    for (const table of ['Port', 'Interface']) {
      const rows = tables.get(table) ?? new Map();
      const get = (id: string) => {
        looked++;
        return rows.get(id);
      };
      counting.set(table, { get } as never);
    }
    const { bridges: readBridges, problems } = switchConfig(counting);
    assert.ok(looked <= 2000, `${looked} look-ups`);
    assert.equal(
      [...readBridges.values()].reduce((sum, one) => sum + one.interfaces.length, 0),
      256,
    );
    assert.deepEqual(problems, ['bridge br0 has 1000 ports; only 256 are checked for uplinks']);
  });

  it('only the first mappings, addresses, masks and names are read; a short message reports the others', () => {
    const pairs = Array.from({ length: 20_000 }, (_, i) => `net${i}:br${i}`).join();
    const of = (externalIds: [string, string][], otherConfig: [string, string][] = [], bridges = 1) => {
      const row = {
        external_ids: ['map', externalIds],
        other_config: ['map', [['dpdk-init', 'true'], ...otherConfig]],
      };
      const list = Array.from({ length: bridges }, (_, i) => [
        `b${i}`,
        { insert: { name: `br${i}`, ports: ['set', []] } },
      ]);
      return switchConfig(tablesOf({ Open_vSwitch: { r: { insert: row } }, Bridge: Object.fromEntries(list) }));
    };
    const many = of([['ovn-bridge-mappings', pairs]]);
    assert.equal(many.mappings.size, 256);
    assert.match(many.problems.join(), /characters; only 32\d+ are read.*physnets; only 256 are read/);
    const faulty = of([['ovn-bridge-mappings', ':'.repeat(100).concat(',').repeat(300)]]);
    assert.ok(faulty.problems.join().length < 1000 && faulty.problems.join().includes('and 296 more'));
    assert.deepEqual([...of([['ovn-bridge-mappings', 'a:x,a:y']]).mappings], [['a', ['x']]], 'the first, as in OVN');
    assert.equal(
      of([['ovn-encap-ip', Array.from({ length: 100_000 }, (_, i) => `::${i}`).join()]]).encapIps.length,
      16,
    );
    assert.match(of([], [['pmd-cpu-mask', 'f'.repeat(1_000_000)]]).problems.join(), /it has 1000000 characters/);
    const bridges = of([], [], 1100);
    assert.deepEqual([bridges.bridges.size, bridges.problems.length], [1024, 1]);
  });

  it('a NUMA node that no machine has is ignored', () => {
    const dpdk = (numaId: string) => ({
      Bridge: { b: { insert: { name: 'br', ports: ['uuid', 'p'] } } },
      Port: { p: { insert: { name: 'p', interfaces: ['uuid', 'i'] } } },
      Interface: { i: { insert: { name: 'd', type: 'dpdk', status: ['map', [['numa_id', numaId]]] } } },
    });
    const numaIdOf = (numaId: string) => switchConfig(tablesOf(dpdk(numaId))).bridges.get('br')?.interfaces[0]?.numaId;
    assert.deepEqual(
      [numaIdOf('1'), numaIdOf('-1'), numaIdOf('99999999'), numaIdOf('1e9')],
      [1, undefined, undefined, 1],
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
      const { pmdCpus, problems } = switchConfig(tablesOf({ Open_vSwitch: { r: { insert: row } } }));
      assert.deepEqual([pmdCpus.toString(), problems.length > 0], [cpus, faulty]);
    });
  }

  it('several encap addresses are read, faulty mappings are reported, and a mask without polling is ignored', () => {
    const externalIds = [
      ['ovn-encap-ip', '10.0.0.1, 10.0.1.1'],
      ['ovn-bridge-mappings', 'a:br-a,,b,c:'],
    ];
    const row = { external_ids: ['map', externalIds], other_config: ['map', [['pmd-cpu-mask', '0xc']]] };
    const config = switchConfig(tablesOf({ Open_vSwitch: { r: { insert: row } } }));
    assert.deepEqual(config.encapIps, ['10.0.0.1', '10.0.1.1']);
    assert.deepEqual([...config.mappings], [['a', ['br-a']]]);
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
  /** The server's answer to a message. */
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

  it('makes calls and answers echo', async () => {
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

  it('fails with the error text of the server, even without `result`', async () => {
    answer = (socket, { id }) => socket.write(JSON.stringify({ id, error: 'unknown method' }));
    await assert.rejects(connect().call('bogus', []), (error) => {
      return error instanceof OvsdbError && /unknown method/.test(error.message) && error.message.includes(socketPath);
    });
  });

  it('ends with the server and rejects a call in progress', async () => {
    answer = (socket) => socket.destroy();
    const connection = connect();
    await assert.rejects(connection.call('monitor', []), /closed the connection/);
    await assert.rejects(connection.ended, OvsdbError);
    await assert.rejects(connection.call('list_dbs', []), /has ended/);
  });

  it('ends at an echo of more than 4 KiB, without an answer', async () => {
    answer = (socket) => socket.write(JSON.stringify({ id: 1, method: 'echo', params: ['x'.repeat(100_000)] }));
    const connection = connect();
    await assert.rejects(connection.call('list_dbs', []), /an echo of more than 4 KiB/);
    assert.ok(received.length < 1000, `${received.length} bytes were sent`);
  });

  it('gives short texts for huge errors and messages', async () => {
    const long = 'x'.repeat(1024 * 1024);
    for (const message of [{ error: long }, { error: { [long]: long } }, { method: 7 }, { params: long }, [long]]) {
      answer = (socket, { id }) => socket.write(JSON.stringify(Array.isArray(message) ? message : { id, ...message }));
      await assert.rejects(connect().call('list_dbs', []), (error) => {
        return error instanceof OvsdbError && error.message.length < 600;
      });
    }
  });

  it('ends after text that is not JSON', async () => {
    answer = (socket) => socket.write('nonsense');
    await assert.rejects(connect().call('list_dbs', []), /not JSON-RPC/);
  });

  it('follows the tables from the start, after each change and after a restart of the server', async () => {
    const row = (ip: string) => ({
      Open_vSwitch: { r: { insert: { external_ids: ['map', [['ovn-encap-ip', ip]]] } } },
    });
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
    const update = { id: null, method: 'update2', params: ['plumbline', row('10.0.0.2')] };
    sockets[0]?.write(JSON.stringify(update) + JSON.stringify({ ...update, params: ['plumbline', row('10.0.0.3')] }));
    await eventually(() => seen.at(-1) === '10.0.0.3', 'the change');
    close();
    await eventually(() => problems.length > 0, 'the problem is reported');
    rmSync(socketPath, { force: true });
    await listen();
    await eventually(() => seen.at(-1) === '10.0.0.1', 'followed again');
    stop.abort();
    await done;
  });

  it('waits for an absent socket without attempts, and connects when it is created', async () => {
    close();
    rmSync(socketPath, { force: true });
    answer = (socket, { id }) => socket.write(JSON.stringify({ id, result: {}, error: null }));
    let follows = 0;
    const problems: string[] = [];
    const onProblem = (error: Error) => void problems.push(error.message);
    const done = followOvsdb({ socketPath, onTables: () => follows++, onProblem }, stop.signal);
    await new Promise((resolve) => setTimeout(resolve, 1000));
    assert.equal(problems.length, 1, problems.join());
    await listen();
    await eventually(() => follows > 0, 'followed');
    stop.abort();
    await done;
  });

  it('ignores updates of another monitor and notifications of another kind', async () => {
    const row = (ip: string) => ({
      Open_vSwitch: { r: { insert: { external_ids: ['map', [['ovn-encap-ip', ip]]] } } },
    });
    answer = (socket, { id }) => socket.write(JSON.stringify({ id, result: row('10.0.0.1'), error: null }));
    const seen: string[] = [];
    const onTables = (tables: Tables) => void seen.push(switchConfig(tables).encapIps.join());
    const done = followOvsdb({ socketPath, onTables, onProblem: () => {} }, stop.signal);
    await eventually(() => seen.length === 1, 'the first');
    const notifications = [
      ['update2', 'other', '10.0.0.2'],
      ['update', 'plumbline', '10.0.0.3'],
      ['update2', 'plumbline', '10.0.0.4'],
    ] as const;
    for (const [method, name, ip] of notifications)
      sockets[0]?.write(JSON.stringify({ id: null, method, params: [name, row(ip)] }));
    await eventually(() => seen.at(-1) === '10.0.0.4', 'the update of its own monitor');
    assert.deepEqual(seen, ['10.0.0.1', '10.0.0.4']);
    stop.abort();
    await done;
  });
});
