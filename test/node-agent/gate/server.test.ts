import assert from 'node:assert/strict';
import { existsSync, rmSync, statSync } from 'node:fs';
import { createConnection, Server } from 'node:net';
import { dirname, join } from 'node:path';
import { mock } from 'node:test';
import { denial, ProtocolError, QuestionReader } from '../../../node-agent/gate/protocol.ts';
import { type GateCaller, GateServer } from '../../../node-agent/gate/server.ts';
import { eventually, recordingLogger, replaceFile, tempDirectories, useDuties } from '../support.ts';

type GateServerDeps = ConstructorParameters<typeof GateServer>[0];

const question = () => Buffer.from('plumbline-gate/1 ADD 16 2\nCNI_IFNAME=eth0\0{}');

describe('the gate’s server', () => {
  const temp = tempDirectories();
  let path: string;
  const start = useDuties();
  let stop: () => Promise<void>;
  let callers: GateCaller[];
  let logged: ReturnType<typeof recordingLogger>;

  const serve = async (limits: GateServerDeps['limits'], answer?: GateServerDeps['answer']) => {
    path = join(temp(), 'gate.sock');
    callers = [];
    logged = recordingLogger();
    const hold: GateServerDeps['answer'] = (_question, asker) => {
      callers.push(asker);
      return new Promise<void>((resolve) => asker.gone.addEventListener('abort', () => resolve()));
    };
    const limited = { log: logged.log, limits: limits ?? {} };
    stop = start(new GateServer({ socketPath: path, answer: answer ?? hold, ...limited }));
    await eventually(() => existsSync(path), 'it listens');
  };

  /** A connection, and whether the server has closed it. */
  const connect = () => {
    const socket = createConnection(path);
    const connection = { socket, closed: false };
    socket.on('error', () => undefined);
    socket.on('close', () => {
      connection.closed = true;
    });
    socket.resume();
    return connection;
  };

  for (const [what, act] of [
    ['removed', () => rmSync(path)],
    ['removed with its directory', () => rmSync(dirname(path), { recursive: true })],
    ['replaced', () => replaceFile(path, '')],
  ] as const) {
    it(`listens again within five seconds when its socket is ${what}, and answers who is connected`, async () => {
      await serve({});
      const before = connect();
      before.socket.write(question());
      await eventually(() => callers.length === 1, 'asked');
      const begun = performance.now();
      act();
      await eventually(() => existsSync(path) && statSync(path).isSocket(), 'it listens again');
      assert.ok(performance.now() - begun < 5000);
      assert.equal(statSync(path).mode & 0o777, 0o600);
      connect().socket.write(question());
      await eventually(() => callers.length === 2, 'asked at the new socket');
      assert.equal(before.closed, false);
      assert.ok(logged.said('the gate’s socket was removed or replaced; listening again'));
    });
  }

  it('continues when accepting a connection fails, as without descriptors, and says so', async () => {
    const servers: Server[] = [];
    const { listen } = Server.prototype;
    const listening = mock.method(Server.prototype, 'listen', function (this: Server, ...args: never[]) {
      servers.push(this);
      return Reflect.apply(listen, this, args);
    });
    await serve({});
    listening.mock.restore();
    await eventually(() => servers[0]?.listening === true, 'it listens');
    servers[0]?.emit('error', new Error('accept EMFILE'));
    assert.equal(logged.lines.at(-1)?.['reason'], 'accept EMFILE');
    connect().socket.write(question());
    await eventually(() => callers.length === 1, 'asked');
    assert.ok(logged.said('recovered'));
  });

  it('removes its socket when it ends', async () => {
    await serve({});
    await stop();
    assert.equal(existsSync(path), false);
  });

  it('closes the connection of a shim that sends its request byte by byte, at the deadline', async () => {
    await serve({ questionWithin: 0.3 });
    const slow = connect();
    const timer = setInterval(() => slow.socket.write('p'), 20);
    await eventually(() => slow.closed, 'closed');
    clearInterval(timer);
  });

  it('closes connections beyond the limit at once and answers the others', async () => {
    await serve({ connections: 3 });
    const connections = Array.from({ length: 3 }, connect);
    for (const { socket } of connections) socket.write(question());
    await eventually(() => callers.length === 3, 'asked');
    const beyond = connect();
    await eventually(() => beyond.closed, 'closed');
    assert.ok(connections.every(({ closed }) => !closed));
  });

  it('counts announced bytes whether they arrive or not', async () => {
    await serve({ bytes: 3 * 1024 * 1024 });
    const announce = 'plumbline-gate/1 ADD 0 1048576\n';
    const connections = Array.from({ length: 2 }, connect);
    for (const { socket } of connections) socket.write(announce);
    const small = connect();
    small.socket.write(question());
    await eventually(() => callers.length === 1, 'a small one has room');
    const beyond = connect();
    beyond.socket.write(announce);
    await eventually(() => beyond.closed, 'closed');
    assert.ok(connections.every(({ closed }) => !closed));
    for (const { socket } of connections) socket.destroy();
    let next = beyond;
    await eventually(() => {
      if (next.closed) {
        next = connect();
        next.socket.write(announce + 'x'.repeat(1024 * 1024));
      }
      return callers.length === 2;
    }, 'what has gone has given its bytes back');
  });

  it('counts no bytes of an answered request while its connection stays open', async () => {
    const bytes = question();
    const reader = new QuestionReader();
    reader.read(bytes);
    let answered = 0;
    await serve({ bytes: reader.size }, () => void answered++);
    const connections = [connect(), connect()];
    for (const [i, connection] of connections.entries()) {
      connection.socket.write(bytes);
      await eventually(() => answered === i + 1 || connection.closed, 'it is read');
    }
    assert.deepEqual([answered, ...connections.map(({ closed }) => closed)], [2, false, false]);
  });
});

const read = (text: string) => new QuestionReader().read(Buffer.from(text));
const ENVIRONMENT = 'CNI_ARGS=a=b;c=d\0CNI_IFNAME=eth0\0nonsense\0EMPTY=\0';

describe('the gate’s protocol: requests', () => {
  it('are read: verb, variables, configuration', () => {
    const question = read(`plumbline-gate/1 ADD ${ENVIRONMENT.length} 2\n${ENVIRONMENT}{}`);
    const environment = new Map(Object.entries({ CNI_ARGS: 'a=b;c=d', CNI_IFNAME: 'eth0', EMPTY: '' }));
    assert.deepEqual(question, { verb: 'ADD', environment, conf: '{}' });
  });

  it('allow each verb of CNI', () => {
    for (const verb of ['ADD', 'DEL', 'CHECK', 'GC', 'STATUS', 'VERSION']) {
      const question = read(`plumbline-gate/1 ${verb} 0 0\n`);
      assert.deepEqual([question?.verb, question?.conf, question?.environment.size], [verb, '', 0]);
    }
  });

  const refused: [string, string, RegExp][] = [
    ['another version', 'plumbline-gate/2 ADD 0 0\n', /not a request in version 1: "plumbline-gate\/2/],
    ['another verb', 'plumbline-gate/1 MUL 0 0\n', /not a request in version 1/],
    ['no lengths', 'plumbline-gate/1 ADD\n', /not a request in version 1/],
    ['more variables than 64 KiB', 'plumbline-gate/1 ADD 65537 0\n', /too long/],
    ['more configuration than a MiB', 'plumbline-gate/1 ADD 0 1048577\n', /too long/],
    ['a first line that ends after 128 bytes', `${'x'.repeat(128)}\n`, /the first line is too long/],
  ];
  for (const [name, text, message] of refused) {
    it(`refuses ${name}`, () =>
      assert.throws(
        () => read(text),
        (error) => error instanceof ProtocolError && message.test(error.message),
      ));
  }
});

describe('the gate’s protocol: refusals', () => {
  for (const [label, message, text] of [
    ['of a few characters are whole', 'dé', 'dé'],
    ['may be empty', '', ''],
    ['of 1500 bytes are whole', 'x'.repeat(1500), 'x'.repeat(1500)],
    ['of more bytes are cut', 'x'.repeat(1501), 'x'.repeat(1500)],
    ['are cut at a whole character', `xx${'€'.repeat(1000)}`, `xx${'€'.repeat(499)}`],
  ] as const) {
    it(label, () => assert.equal(String(denial({ code: 11, message })), `deny 11 ${Buffer.byteLength(text)}\n${text}`));
  }
});
