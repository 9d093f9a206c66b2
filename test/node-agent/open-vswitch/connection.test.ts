import assert from 'node:assert/strict';
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { mock } from 'node:test';
import { connectOvsdb, OvsdbError } from '../../../node-agent/open-vswitch/ovsdb/follow.ts';
import { eventually, tempDirectories } from '../support.ts';
import { serveOvsdb } from './ovsdb-stand-in.ts';

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
    connectOvsdb({
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
    await assert.rejects(connect().ended, (error: Error) => {
      assert.ok(error instanceof OvsdbError);
      assert.match(error.message, /db\.sock: connect ENOENT/);
      assert.ok(error.cause instanceof Error);
      return true;
    });
  });

  it('ends with a reason after an invalid message', async () => {
    answers = ['{"id":{},"result":1}'];
    await refused(connect().call('ask', []), 'the server sent something other than a JSON-RPC message');
    answers = ['nonsense'];
    await assert.rejects(connect().call('ask', []), /not JSON-RPC/);
  });
});
