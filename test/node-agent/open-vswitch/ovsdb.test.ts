import assert from 'node:assert/strict';
import { rmSync } from 'node:fs';
import { createServer, type Socket } from 'node:net';
import { join } from 'node:path';
import { mock } from 'node:test';
import { switchConfig } from '../../../node-agent/networks/switch-config.ts';
import { COLUMNS, followOvsdb, OvsdbConnection } from '../../../node-agent/open-vswitch/ovsdb/follow.ts';
import { JsonStream } from '../../../node-agent/open-vswitch/ovsdb/json-stream.ts';
import { OvsdbReplica, type Tables } from '../../../node-agent/open-vswitch/ovsdb/replica.ts';
import { vector } from '../../support/vectors.ts';
import { startVirtualTime } from '../../support/virtual-time.ts';
import { eventually, recordingLogger, tempDirectories } from '../support.ts';

interface OvsdbMessage {
  readonly id?: unknown;
  readonly method?: string;
  readonly params?: unknown;
}

/** A server of OVSDB that keeps all received messages. */
async function serveOvsdb(path: string, answer: (send: (text: string) => void, message: OvsdbMessage) => void) {
  const sockets: Socket[] = [];
  const received: OvsdbMessage[] = [];
  const server = createServer((socket) => {
    sockets.push(socket);
    const stream = new JsonStream();
    socket.on('error', () => {});
    socket.on('data', (chunk) => {
      for (const message of stream.read(chunk)) {
        received.push(message as OvsdbMessage);
        answer((text) => void socket.write(text), message as OvsdbMessage);
      }
    });
  });
  await new Promise<void>((resolve) => server.listen(path, resolve));
  const close = () => {
    for (const socket of sockets) socket.destroy();
    server.close();
  };
  return { sockets, received, close };
}

interface Exchange {
  readonly request?: { readonly method: string; readonly params: unknown[]; readonly id: number | string };
  readonly reply?: { readonly id: number | string; readonly result?: unknown; readonly error?: unknown };
}
const samples = vector<Exchange[]>('ovsdb-samples.json');

/** The recorded initial reply of monitor_cond_since. */
function recordedTables(): Tables {
  const reply = samples.find(({ request }) => request?.method === 'monitor_cond_since')!.reply!;
  const [, , initial] = reply.result as [unknown, unknown, unknown];
  const replica = new OvsdbReplica(COLUMNS);
  replica.apply(initial);
  return replica.tables;
}

describe('recorded messages of OVSDB', () => {
  it('the recorded configuration is read', () => {
    const config = switchConfig(recordedTables());
    const mappings = { physnet: ['br-ex'], 'tenant-a': ['br-data'], 'tenant-dpdk': ['br-dpdk'] };
    assert.deepEqual(Object.fromEntries(config.mappings), mappings);
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
});

describe('the followed tables of OVSDB', () => {
  const temp = tempDirectories();
  let socketPath: string;
  let served: Awaited<ReturnType<typeof serveOvsdb>>;
  let stop: AbortController;
  /** The result of each call. */
  let result: unknown;

  /** The encapsulation addresses of each configuration, and the problems. */
  let seen: string[];
  let problems: string[];
  const follow = () => {
    const onTables = (tables: Tables) => seen.push(switchConfig(tables).encapIps.join());
    const onProblem = ({ message }: Error) => problems.push(message);
    return followOvsdb({ socketPath, onTables, onProblem, log: recordingLogger().log }, stop.signal);
  };
  const listen = async () => {
    served = await serveOvsdb(socketPath, (send, { id }) => send(JSON.stringify({ id, result, error: null })));
  };
  beforeEach(async () => {
    socketPath = join(temp(), 'db.sock');
    stop = new AbortController();
    seen = [];
    problems = [];
    await listen();
  });
  afterEach(() => {
    stop.abort();
    served.close();
  });

  it('follows the tables from the start, after each change and after a restart of the server', async () => {
    const map = (ip: string) => ['map', [['ovn-encap-ip', ip]]];
    const row = (ip: string) => ({ Open_vSwitch: { r: { insert: { external_ids: map(ip) } } } });
    result = row('10.0.0.1');
    const done = follow();
    await eventually(() => seen.at(-1) === '10.0.0.1', 'the first');
    const notifications = [
      ['update2', 'other', '10.0.0.2'],
      ['update', 'plumbline', '10.0.0.3'],
      ['update2', 'plumbline', '10.0.0.4'],
      ['update2', 'plumbline', '10.0.0.5'],
    ] as const;
    const messages = notifications.map(([method, name, ip]) => ({ id: null, method, params: [name, row(ip)] }));
    served.sockets[0]?.write(messages.map((message) => JSON.stringify(message)).join(''));
    await eventually(() => seen.at(-1) === '10.0.0.5', 'the changes of its own monitor');
    assert.deepEqual(seen, ['10.0.0.1', '10.0.0.4', '10.0.0.5']);
    served.close();
    await eventually(() => problems.length > 0, 'the problem is reported');
    rmSync(socketPath, { force: true });
    await listen();
    await eventually(() => seen.at(-1) === '10.0.0.1', 'followed again');
    stop.abort();
    await done;
  });

  it('waits for an absent socket without attempts, and connects when it is created', async () => {
    served.close();
    rmSync(socketPath, { force: true });
    result = {};
    const time = startVirtualTime();
    const done = follow();
    await time.pass(59).finally(time.end);
    assert.equal(problems.length, 1, problems.join());
    await listen();
    await eventually(() => seen.length > 0, 'followed');
    stop.abort();
    await done;
  });
});

describe('a connection to OVSDB', () => {
  const temp = tempDirectories();
  let socketPath: string;
  let served: Awaited<ReturnType<typeof serveOvsdb>>;
  let answers: string[];
  let stop: AbortController;
  let notified: [string, readonly unknown[]][];

  beforeEach(async () => {
    socketPath = join(temp(), 'db.sock');
    answers = [];
    stop = new AbortController();
    notified = [];
    served = await serveOvsdb(socketPath, (send, { method }) => {
      if (method === 'ask') for (const text of answers) send(text);
    });
  });
  afterEach(() => {
    mock.timers.reset();
    stop.abort();
    served.close();
  });
  const connect = () =>
    new OvsdbConnection({
      socketPath,
      signal: stop.signal,
      onNotification: (method, params) => void notified.push([method, params]),
    });
  const refused = (promise: Promise<unknown>, why: string) =>
    assert.rejects(promise, { name: 'OvsdbError', code: 'ovsdb', message: `${socketPath}: ${why}` });

  it('numbers calls from 1 and matches each answer by its number', async () => {
    answers = ['{"id":7,"result":"of none"}{"id":"1","result":"of a text"}', '{"id":1,"result":"first"}'];
    const connection = connect();
    assert.equal(await connection.call('ask', ['a']), 'first');
    answers = ['{"id":1,"result":"again"}', '{"id":2,"result":"second","error":null}'];
    assert.equal(await connection.call('ask', []), 'second');
    assert.deepEqual(served.received, [
      { id: 1, method: 'ask', params: ['a'] },
      { id: 2, method: 'ask', params: [] },
    ]);
  });

  it('fails with the error text of the server', async () => {
    answers = ['{"id":1,"error":"no such method","result":1}'];
    await refused(connect().call('ask', []), 'the server answered "\\"no such method\\""');
  });

  it('answers an echo with its params and its id, or null without one', async () => {
    answers = [
      '{"id":"x","method":"echo","params":["a"]}',
      '{"id":0,"method":"echo"}',
      '{"method":"echo","params":[]}',
      '{"id":1,"result":true}',
    ];
    await connect().call('ask', []);
    await eventually(() => served.received.length === 4, 'answered');
    assert.deepEqual(served.received.slice(1), [
      { id: 'x', result: ['a'], error: null },
      { id: 0, result: [], error: null },
      { id: null, result: [], error: null },
    ]);
    assert.deepEqual(notified, []);
  });

  it('answers an echo with up to 4096 bytes, and closes the connection for a longer one', async () => {
    const echo = (length: number) => JSON.stringify({ id: 1, method: 'echo', params: ['x'.repeat(length)] });
    const around = JSON.stringify({ id: 1, result: [''], error: null }).length;
    answers = [echo(4096 - around), '{"id":1,"result":true}'];
    const connection = connect();
    assert.equal(await connection.call('ask', []), true);
    answers = [echo(4097 - around)];
    await refused(connection.call('ask', []), 'an echo of more than 4 KiB');
    assert.equal(served.received.length, 3, 'the longer one was not answered');
  });

  it('fails a call after 5 s, ignores a late answer, and stays open', async () => {
    const connection = connect();
    answers = ['{"id":1,"result":"x"}'];
    await connection.call('ask', []);
    mock.timers.enable({ apis: ['setTimeout'] });
    const late = connection.call('slow', []);
    const failed = refused(late, 'no answer to slow in 5 s');
    mock.timers.tick(4999);
    assert.equal(await Promise.race([late, new Promise((resolve) => setImmediate(() => resolve('open')))]), 'open');
    mock.timers.tick(1);
    await failed;
    answers = ['{"id":2,"result":"late"}', '{"id":3,"result":"y"}'];
    assert.equal(await connection.call('ask', []), 'y');
  });

  it('fails all calls when the server ends, and takes no new ones', async () => {
    const connection = connect();
    const calls = [connection.call('a', []), connection.call('b', [])];
    await eventually(() => served.received.length === 2, 'both are sent');
    served.close();
    for (const call of calls) await refused(call, 'the server closed the connection');
    await refused(connection.ended, 'the server closed the connection');
    await refused(connection.call('c', []), 'the connection has ended');
  });

  it('ends when the signal aborts, before or after it started', async () => {
    const connection = connect();
    const call = connection.call('a', []);
    stop.abort();
    await refused(call, 'the connection is no longer needed');
    await refused(connection.ended, 'the connection is no longer needed');
    await refused(connect().ended, 'the connection is no longer needed');
  });

  it('fails with the error of the system and its cause if there is no socket', async () => {
    served.close();
    rmSync(socketPath, { force: true });
    const error = { name: 'OvsdbError', message: /db\.sock: connect ENOENT/ };
    await assert.rejects(connect().ended, error);
    await assert.rejects(connect().ended, ({ cause }: Error) => cause instanceof Error);
  });

  it('ends with a reason after an invalid message', async () => {
    answers = ['{"id":{},"result":1}'];
    await refused(connect().call('ask', []), 'the server sent something other than a JSON-RPC message');
    answers = ['nonsense'];
    await assert.rejects(connect().call('ask', []), /not JSON-RPC/);
  });
});
