import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { request as httpRequest } from 'node:http';
import { request as tlsRequest } from 'node:https';
import { connect, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { hasAllowedName, parseNames } from '../../runtime/client-names.ts';
import { createHttpServer, type HttpServer } from '../../runtime/http-server.ts';
import { assertBoundedJson, JsonTooLarge } from '../../runtime/json-bounds.ts';
import { BodyError, createRequestBodies, type RequestBodies } from '../../runtime/request-bodies.ts';
import { sleep } from '../../runtime/time.ts';
import { createCertificateAuthority } from '../../sandbox/certificates.ts';
import { silent } from '../support/logger.ts';
import { leastProcessorTime } from '../support/processor-time.ts';

const MIB = 1024 * 1024;

describe('request bodies', () => {
  let server: HttpServer;
  let bodies: RequestBodies;
  const callers: Socket[] = [];
  let statuses: number[] = [];
  /** Milliseconds of work for each body. */
  let work = 0;
  let underWay = 0;
  let mostUnderWay = 0;

  const serve = async (limits: { total?: number; seconds?: number; connections?: number } = {}) => {
    bodies = createRequestBodies({ largest: 7 * MIB, ...limits });
    statuses = [];
    [work, underWay, mostUnderWay] = [0, 0, 0];
    server = createHttpServer({
      handler: (request, response) => {
        bodies.read(request).then(
          async (body) => {
            underWay += body.bytes.length;
            mostUnderWay = Math.max(mostUnderWay, underWay);
            await sleep(work / 1000);
            underWay -= body.bytes.length;
            body.release();
            response.end(`${body.bytes.length}`);
          },
          (error: unknown) => {
            assert.ok(error instanceof BodyError);
            statuses.push(error.status);
            response.writeHead(error.status, { connection: 'close' }).end();
          },
        );
      },
      host: '127.0.0.1',
      port: 0,
      connections: limits.connections ?? 256,
      log: silent,
    });
    await server.start();
  };
  afterEach(async () => {
    for (const caller of callers.splice(0)) caller.destroy();
    await server.stop(0);
  });

  const open = async (): Promise<Socket> => {
    const socket = connect(server.port, '127.0.0.1').on('error', () => undefined);
    callers.push(socket);
    await once(socket, 'connect');
    return socket;
  };
  /** Sends a part of a body and then stops. */
  const stall = async (announced: number, sent: number) => {
    const socket = await open();
    socket.write(`POST / HTTP/1.1\r\nhost: x\r\ncontent-length: ${announced}\r\n\r\n`);
    socket.write(Buffer.alloc(sent, 0x20));
    return socket;
  };
  const post = (size: number) =>
    new Promise<string>((resolve, reject) => {
      const to = { host: '127.0.0.1', port: server.port, method: 'POST', agent: false };
      const call = httpRequest({ ...to, headers: { 'content-length': size } }, (response) => {
        let text = '';
        response.setEncoding('utf8').on('data', (chunk: string) => {
          text += chunk;
        });
        response.on('end', () => resolve(text));
      });
      call.on('error', reject).end(Buffer.alloc(size, 0x20));
    });

  it('take at most the bytes in flight if 60 of them stall, while others are served', async () => {
    await serve();
    for (let i = 0; i < 60; i++) await stall(7 * MIB, 7 * MIB - 1);
    await sleep(0.3);
    assert.ok(bodies.bytes <= 24 * MIB, `${bodies.bytes} bytes in flight`);
    assert.ok(bodies.evicted > 50, `${bodies.evicted} given up`);
    assert.equal(await post(20_000), '20000');
    assert.equal(await post(3 * MIB), `${3 * MIB}`, 'a large one too: a stalled one makes room');
  }).timeout(300_000);

  it('end at their deadline with 408', async () => {
    await serve({ seconds: 0.2 });
    const socket = await stall(1000, 10);
    await once(socket.resume(), 'close');
    assert.deepEqual([statuses, bodies.bytes], [[408], 0]);
  });

  it('that arrive byte by byte end at the same deadline', async () => {
    await serve({ seconds: 0.3 });
    const socket = await stall(100_000, 1);
    const drip = setInterval(() => socket.write(' '), 20);
    await once(socket.resume(), 'close');
    clearInterval(drip);
    assert.deepEqual(statuses, [408]);
  });

  it('announced too large are refused before they arrive', async () => {
    await serve();
    await stall(8 * MIB, 1);
    await sleep(0.1);
    assert.deepEqual(statuses, [413]);
  });

  it('in chunks are measured as they arrive', async () => {
    await serve();
    const socket = await open();
    socket.write('POST / HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n');
    const chunk = Buffer.concat([Buffer.from('100000\r\n'), Buffer.alloc(MIB), Buffer.from('\r\n')]);
    for (let i = 0; i < 9 && !socket.destroyed; i++) socket.write(chunk);
    await once(socket.resume(), 'close');
    assert.deepEqual(statuses, [413]);
  });

  it('are processed a few megabytes at a time', async () => {
    await serve();
    work = 20;
    await Promise.all([...Array.from({ length: 40 }, () => post(200_000)), post(3 * MIB)]);
    assert.ok(mostUnderWay <= 3 * MIB, `${mostUnderWay} bytes at once`);
    assert.equal(bodies.bytes, 0);
  });

  it('beyond the connection limit close idle connections', async () => {
    await serve({ connections: 8 });
    for (let i = 0; i < 40; i++) await open();
    assert.equal(await post(100), '100');
    for (let i = 0; i < 40; i++) await stall(1000, 1);
    assert.equal(await post(100), '100');
    await sleep(0.1);
    assert.ok(callers.filter((caller) => !caller.destroyed && caller.readable).length <= 8);
  });
});

describe('JSON before it is decoded', () => {
  it('has a limited number of values and levels', () => {
    for (const text of [`[${'{},'.repeat(300_000)}{}]`, '['.repeat(100_000), `{"a":[${'1,'.repeat(400_000)}1]}`]) {
      assert.throws(() => assertBoundedJson(Buffer.from(text)), JsonTooLarge);
    }
    assertBoundedJson(Buffer.from(JSON.stringify(Array(90_000).fill(0))));
    assert.throws(
      () => assertBoundedJson(Buffer.from(JSON.stringify(Array(110_000).fill(0)))),
      /more than 100000 values/,
    );
    const prose = JSON.stringify({ text: '{},[]\\"'.repeat(100_000), list: [1, { a: 'b' }] });
    assertBoundedJson(Buffer.from(prose));
    assertBoundedJson(Buffer.from('"never closed \\'));
  });
  it('is scanned once', () => {
    const bytes = Buffer.alloc(7 * MIB, 'a');
    bytes[0] = 0x22;
    const spent = leastProcessorTime(() => assertBoundedJson(bytes));
    assert.ok(spent < 100, `${spent} ms`);
  });
});

describe('client names', () => {
  const authority = createCertificateAuthority('test');
  const clients = createCertificateAuthority('clients');
  let folder: string;
  let server: HttpServer | undefined;
  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'plumbline-names-'));
    const { cert, key } = authority.issue(['127.0.0.1']);
    await writeFile(join(folder, 'tls.crt'), cert);
    await writeFile(join(folder, 'tls.key'), key);
    await writeFile(join(folder, 'ca.crt'), clients.cert);
  });
  afterEach(() => server?.stop(0));
  after(() => rm(folder, { recursive: true }));

  const ask = async (allowed: string, client?: { cert: string; key: string }) => {
    const [certFile, keyFile, clientCaFile] = ['tls.crt', 'tls.key', 'ca.crt'].map((file) => join(folder, file));
    server = createHttpServer({
      handler: (_request, response) => response.end('ok'),
      host: '127.0.0.1',
      port: 0,
      certificate: { certFile: certFile!, keyFile: keyFile!, clientCaFile, clientNames: parseNames(allowed) },
      log: silent,
    });
    await server.start();
    const { port } = server;
    return new Promise<number | undefined>((resolve, reject) => {
      const to = { host: '127.0.0.1', port, ca: authority.cert, agent: false as const, ...client };
      tlsRequest(to, (response) => resolve(response.resume().statusCode))
        .on('error', reject)
        .end();
    });
  };

  it('an allowed name is served', async () => {
    assert.equal(await ask('someone, kube-apiserver', clients.issue(['kube-apiserver'])), 200);
  });
  it('any other name of the same CA is refused before a request', async () => {
    await assert.rejects(ask('kube-apiserver', clients.issue(['system:node:worker-1'])));
  });
  it('a client without a certificate is refused', async () => {
    await assert.rejects(ask('kube-apiserver'));
  });
  it('without configured names, any certificate of the CA is accepted', async () => {
    assert.equal(await ask('', clients.issue(['anybody'])), 200);
  });
  it('common names, DNS names and URIs count, but not texts that look like them', () => {
    const allowed = new Set(['kube-apiserver']);
    const of = (CN: string | undefined, subjectaltname?: string) =>
      hasAllowedName({ subject: { CN }, subjectaltname } as never, allowed);
    assert.equal(of('kube-apiserver'), true);
    assert.equal(of('x', 'DNS:kube-apiserver'), true);
    assert.equal(of('x', 'DNS:"a, DNS:kube-apiserver"'), false);
    assert.equal(of('x', 'IP Address:kube-apiserver'), false);
    assert.equal(of(undefined), false);
  });
});
