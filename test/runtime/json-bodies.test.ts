import assert from 'node:assert/strict';
import { once } from 'node:events';
import { request as httpRequest } from 'node:http';
import { connect, type Socket } from 'node:net';
import { text } from 'node:stream/consumers';
import { gzipSync } from 'node:zlib';
import express, { type ErrorRequestHandler } from 'express';
import { HttpServer } from '../../runtime/http-server.ts';
import { JsonBodies } from '../../runtime/json-bodies.ts';
import { BodyError } from '../../runtime/json-bounds.ts';
import { eventually } from '../support/eventually.ts';
import { silent } from '../support/logger.ts';

const MIB = 1024 * 1024;
const LATIN1 = 'application/json; charset=latin1';
const MANY = Buffer.from(`[${'{},'.repeat(20_000)}{}]`);
/** Addresses of loopback stand for two clients. */
const [ATTACKER, CALLER] = ['127.0.0.2', '127.0.0.3'];

describe('JSON bodies', () => {
  let server: HttpServer;
  let bodies: JsonBodies;
  const callers: Socket[] = [];
  let statuses: number[] = [];
  /** Seconds until the handler of each body has finished. */
  let work = Promise.resolve();

  const serve = async ({
    connections = 256,
    ...limits
  }: Partial<ConstructorParameters<typeof JsonBodies>[0]> & { connections?: number } = {}) => {
    bodies = new JsonBodies({ maxBodyBytes: 7 * MIB, ...limits });
    statuses = [];
    work = Promise.resolve();
    const app = express();
    const fail: ErrorRequestHandler = (error: unknown, _request, response, _next) => {
      assert.ok(error instanceof BodyError, String(error));
      statuses.push(error.status);
      response.setHeader('connection', 'close').status(error.status).send(error.message);
    };
    app.post(
      '/',
      bodies.handler(async ({ body }, response) => {
        await work;
        response.send(`${JSON.stringify(body).length}`);
      }),
    );
    app.use(fail);
    server = new HttpServer({ handler: app, host: '0.0.0.0', port: 0, connections, log: silent });
    await server.start();
  };
  afterEach(async () => {
    for (const caller of callers.splice(0)) caller.destroy();
    await server.stop(0);
  });

  const open = async (localAddress = ATTACKER): Promise<Socket> => {
    const socket = connect({ port: server.port, host: '127.0.0.1', localAddress }).on('error', () => undefined);
    callers.push(socket);
    await once(socket, 'connect');
    return socket;
  };
  /** Sends a part of a body and then stops. */
  const stall = async (announced: number, sent: number, localAddress = ATTACKER) => {
    const socket = await open(localAddress);
    socket.write(`POST / HTTP/1.1\r\nhost: x\r\ncontent-length: ${announced}\r\n\r\n`);
    socket.write(Buffer.alloc(sent, 0x20));
    return socket;
  };
  /** The answer to a JSON text of this size. */
  const post = (size: number, localAddress = CALLER) =>
    send(Buffer.from(JSON.stringify('x'.repeat(size - 2))), { 'content-length': size }, localAddress);
  const send = (body: Buffer, headers: Record<string, string | number>, localAddress = CALLER) =>
    new Promise<string>((resolve, reject) => {
      const to = { host: '127.0.0.1', localAddress, port: server.port, method: 'POST', agent: false };
      const call = httpRequest({ ...to, headers }, (response) => resolve(text(response)));
      call.on('error', reject).end(body);
    });

  it('take at most their share of the bytes in flight if 60 of them stall, while others are served', async () => {
    await serve();
    for (let i = 0; i < 60; i++) await stall(7 * MIB, 7 * MIB - 1);
    await eventually(() => bodies.evicted > 50, 'stalled ones are given up');
    assert.ok(bodies.bytes <= 8 * MIB, `${bodies.bytes} bytes in flight`);
    for (const size of [20_000, 3 * MIB, 7 * MIB]) assert.equal(await post(size), `${size}`);
    assert.equal(await post(3 * MIB, ATTACKER), `${3 * MIB}`, 'of the same address too: a stalled one makes room');
  }).timeout(300_000);

  it('that stall at many addresses make room for another address', async () => {
    await serve();
    for (let i = 0; i < 20; i++) await stall(7 * MIB, 100_000, `127.0.1.${i + 1}`);
    await eventually(() => bodies.evicted > 0, 'one is given up');
    assert.ok(bodies.bytes <= 16 * MIB, `${bodies.bytes} bytes in flight`);
    for (const size of [20_000, 3 * MIB, 7 * MIB]) assert.equal(await post(size), `${size}`);
  });

  it('in use count until their answer, and one client has half of the bytes', async () => {
    await serve({ maxBytesInFlight: 4 * MIB });
    let finish = () => {};
    work = new Promise((resolve) => {
      finish = resolve;
    });
    const first = Array.from({ length: 4 }, () => post(500_000, ATTACKER));
    await eventually(() => bodies.bytes === 2_000_000, 'all four are in use');
    assert.match(await post(500_000, ATTACKER), /more than 4194304 bytes of requests are in flight; try again/);
    const other = post(500_000);
    await eventually(() => bodies.bytes === 2_500_000, 'that of another client is in use');
    finish();
    assert.equal(await other, '500000');
    assert.deepEqual(await Promise.all(first), Array(4).fill('500000'));
    assert.deepEqual([bodies.bytes, statuses], [0, [503]]);
  });

  for (const byteByByte of [false, true]) {
    it(`end at their deadline with 408${byteByByte ? ', also if they arrive byte by byte' : ''}`, async () => {
      await serve({ deadlineSeconds: 0.3 });
      const socket = await stall(100_000, 10);
      const drip = setInterval(() => byteByByte && socket.write(' '), 20);
      await once(socket.resume(), 'close');
      clearInterval(drip);
      assert.deepEqual([statuses, bodies.bytes], [[408], 0]);
    });
  }

  it('whose caller leaves no longer count', async () => {
    await serve();
    const socket = await stall(3 * MIB, 100_000);
    await eventually(() => bodies.bytes === 3 * MIB, 'it counts');
    socket.destroy();
    await eventually(() => bodies.bytes === 0, 'it no longer counts');
  });

  it('announced too large are refused before they arrive', async () => {
    await serve();
    await stall(8 * MIB, 1);
    await eventually(() => statuses.length > 0, 'an answer');
    assert.deepEqual(statuses, [413]);
  });

  const refusals: [string, Buffer, Record<string, string | number>, RegExp][] = [
    ['in chunks', Buffer.from('{}'), { 'transfer-encoding': 'chunked' }, /has no Content-Length/],
    ['without content', Buffer.alloc(0), { 'content-length': 0 }, /the body is empty/],
    ['that are not JSON', Buffer.from('{"a'), { 'content-length': 3 }, /the body "\{\\"a": it is not JSON/],
    ['that are not UTF-8', Buffer.from([0x22, 0xff, 0x22]), { 'content-length': 3 }, /not UTF-8/],
    ['that are compressed', gzipSync('{}'), { 'content-encoding': 'gzip', 'content-length': 22 }, /is compressed/],
    ['in another character set', Buffer.from('{}'), { 'content-type': LATIN1, 'content-length': 2 }, /send UTF-8/],
    ['of very many values', MANY, { 'content-length': MANY.length }, /more than 15001 values/],
  ];
  for (const [label, body, headers, message] of refusals) {
    it(`${label} are refused with the reason`, async () => {
      await serve();
      assert.match(await send(body, headers), message);
      assert.equal(bodies.bytes, 0);
    });
  }

  it('beyond the connection limit close idle connections', async () => {
    await serve({ connections: 8 });
    for (let i = 0; i < 40; i++) await open();
    assert.equal(await post(100), '100');
    for (let i = 0; i < 40; i++) await stall(1000, 1);
    assert.equal(await post(100), '100');
    const openCallers = () => callers.filter((caller) => !caller.destroyed && caller.readable);
    await eventually(() => openCallers().length <= 8, 'at most eight are open');
  });
});
