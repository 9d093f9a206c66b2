import assert from 'node:assert/strict';
import { X509Certificate } from 'node:crypto';
import { once } from 'node:events';
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { Agent, request as httpRequest, type RequestListener } from 'node:http';
import { Agent as TlsAgent, request as tlsRequest } from 'node:https';
import { connect } from 'node:net';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { mock } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import type { TLSSocket } from 'node:tls';
import { ServingCertificate } from '../runtime/certificate.ts';
import { createServingDaemon, runDaemon } from '../runtime/daemon.ts';
import { HttpServer } from '../runtime/http-server.ts';
import { createRegistry } from '../runtime/metrics.ts';
import { sleep } from '../runtime/time.ts';
import { createCertificateAuthority } from '../sandbox/certificates.ts';
import { eventually } from './support/eventually.ts';
import { replaceFile, tempDirectories } from './support/files.ts';
import { recordingLogger, silent } from './support/logger.ts';

const authority = createCertificateAuthority('test');
const serverOf = (handler: RequestListener, more: Partial<ConstructorParameters<typeof HttpServer>[0]> = {}) =>
  new HttpServer({ handler, host: '127.0.0.1', port: 0, log: silent, ...more });
const PROBES = { host: '127.0.0.1', port: 0 };
const filesIn = (folder: string) => ({ certFile: join(folder, 'tls.crt'), keyFile: join(folder, 'tls.key') });
const writePair = ({ certFile, keyFile }: ReturnType<typeof filesIn>, { cert, key }: KeyedCertificate) => {
  replaceFile(certFile, cert);
  replaceFile(keyFile, key);
  return cert;
};
type KeyedCertificate = ReturnType<typeof authority.issue>;
describe('an HTTPS server with a renewed certificate', () => {
  const temp = tempDirectories();
  let folder: string;
  let server: HttpServer;
  let logged: ReturnType<typeof recordingLogger>;
  const files = () => filesIn(folder);
  const write = (pair: KeyedCertificate) => writePair(files(), pair);

  beforeEach(async () => {
    folder = temp();
    write(authority.issue(['localhost', '127.0.0.1']));
    logged = recordingLogger();
    server = serverOf((_, response) => response.end('ok'), { certificate: files(), log: logged.log });
    await server.start();
  });
  afterEach(() => server.stop(0));

  /** The serial number of the certificate that the server presented. */
  const ask = (agent?: TlsAgent) =>
    new Promise<string>((resolve, reject) => {
      const options = { host: '127.0.0.1', port: server.port, ca: authority.cert, agent: agent ?? false };
      const call = tlsRequest(options, (response) => {
        const { serialNumber } = (response.socket as TLSSocket).getPeerCertificate();
        response.resume().on('end', () => resolve(serialNumber));
      });
      call.on('error', reject).end();
    });

  it('uses the new one for new connections, and fails no request while it changes 30 times', async function () {
    this.timeout(300_000);
    const running = new AbortController();
    const agent = new TlsAgent({ keepAlive: true, maxSockets: 1 });
    let requests = 0;
    const serials = new Set<string>();
    const failures: unknown[] = [];
    const load = async (agent?: TlsAgent) => {
      while (!running.signal.aborted) {
        await ask(agent).then(
          (serial) => serials.add(serial),
          (error: unknown) => failures.push(error),
        );
        requests++;
      }
    };
    const loads = [load(), load(), load(agent)];
    for (let i = 0; i < 30; i++) {
      const pair = authority.issue(['localhost', '127.0.0.1']);
      const { serialNumber } = new X509Certificate(pair.cert);
      const before = requests;
      write(pair);
      // Some pairs are used, others are overwritten half-way.
      const isDone = () => (i % 10 === 0 ? serials.has(serialNumber) : requests > before);
      await eventually(isDone, `pair ${i}`);
    }
    running.abort();
    await Promise.all(loads);
    agent.destroy();
    assert.deepEqual(failures, []);
    assert.ok(requests > 30, `only ${requests} requests`);
  });

  it('keeps the old one while certificate and key do not match', async () => {
    const before = await ask();
    writeFileSync(files().keyFile, authority.issue(['localhost']).key);
    await eventually(() => logged.said('reading the new certificate failed; keeping the old one'), 'it is read');
    assert.equal(await ask(), before);
    write(authority.issue(['localhost', '127.0.0.1']));
    await eventually(async () => (await ask()) !== before, 'the new one');
  });

  it('does not start with a pair that does not match, and reports it', async () => {
    writeFileSync(files().keyFile, authority.issue(['localhost']).key);
    const other = serverOf(() => undefined, { certificate: files() });
    await assert.rejects(other.start(), { name: 'CertificateError', message: /is not the key of/ });
  });
});
describe('a serving certificate', () => {
  const temp = tempDirectories();

  it('is read at once after a change before the watch, and after its directory was missing', async () => {
    const folder = join(temp(), 'certificates');
    const files = filesIn(folder);
    const write = (pair: KeyedCertificate) => {
      mkdirSync(folder, { recursive: true });
      return writePair(files, pair);
    };
    const read: string[] = [];
    write(authority.issue(['localhost']));
    const certificate = new ServingCertificate(files, silent);
    await certificate.load();
    const early = write(authority.issue(['localhost']));
    certificate.watch(async ({ cert }) => void read.push(String(cert)));
    await eventually(() => read.length === 1, 'the early change');
    rmSync(folder, { recursive: true });
    const late = write(authority.issue(['localhost']));
    await eventually(() => read.length === 2, 'the late change');
    certificate.stop();
    assert.deepEqual(read, [early, late]);
  });
});
describe('a certificate outside its validity', () => {
  const temp = tempDirectories();
  const DAY = 86_400_000;

  for (const [title, now, messages] of [
    ['expired', Date.now() - 3 * DAY, ['the serving certificate is expired or not valid yet']],
    ['of the future', Date.now() + 3 * DAY, ['the serving certificate is expired or not valid yet']],
    ['valid', Date.now(), []],
  ] as const) {
    it(`is loaded, and its fault is logged as an error: ${title}`, async () => {
      const files = filesIn(temp());
      writePair(files, authority.issue(['localhost'], { now, days: 1 }));
      const { log, lines } = recordingLogger();
      await new ServingCertificate(files, log).load();
      const errors = lines.filter(({ level }) => level === 50).map(({ msg }) => msg);
      assert.deepEqual(errors, messages);
    });
  }
});
describe('an HTTP server that stops', () => {
  it('finishes a request in progress and closes kept-alive connections', async () => {
    let begin: () => void;
    const begun = new Promise<void>((resolve) => {
      begin = resolve;
    });
    const server = serverOf((_, response) => {
      begin();
      void sleep(0.2).then(() => response.end('done'));
    });
    await server.start();
    const agent = new Agent({ keepAlive: true });
    const answer = new Promise<string>((resolve, reject) => {
      const call = httpRequest({ host: '127.0.0.1', port: server.port, agent }, (response) => resolve(text(response)));
      call.on('error', reject).end();
    });
    await begun;
    await server.stop(5);
    assert.equal(await answer, 'done');
    agent.destroy();
  });

  it('answers a request that has arrived on a kept-alive connection but is not read yet', async () => {
    const server = serverOf((_, response) => response.end('done'));
    await server.start();
    const socket = connect(server.port, '127.0.0.1').setEncoding('utf8');
    const request = 'POST / HTTP/1.1\r\nhost: localhost\r\ncontent-length: 0\r\n\r\n';
    socket.write(request);
    await once(socket, 'data');
    // Written into the kernel at once; this process reads no socket before the next iteration of its event loop.
    socket.write(request);
    const answered = new Promise<string>((resolve, reject) => {
      socket
        .once('data', resolve)
        .once('error', reject)
        .once('close', () => reject(new Error('closed unanswered')));
    });
    const [answer] = await Promise.all([answered, server.stop(5)]);
    assert.match(answer, /^HTTP\/1.1 200 OK\r\n(?:.*\r\n)*connection: close\r\n/i);
    socket.destroy();
  });
});

/** Longer than the interval of the calls below, even on a busy machine. */
const QUIET = 1;
describe('a serving daemon that is stopped', () => {
  const start = async (drain: { readonly quiet: number; readonly most: number }) => {
    const server = serverOf((_, response) => response.end('ok'));
    let closed = 0;
    const daemon = createServingDaemon({
      server,
      drain,
      probes: PROBES,
      registry: createRegistry(),
      log: silent,
      notReady: () => undefined,
      run: async () => undefined,
      close: async () => void closed++,
    });
    await daemon.start();
    const call = async () => {
      const answer = await fetch(`http://127.0.0.1:${server.port}/`, { headers: { connection: 'close' } });
      return `${answer.status} ${await answer.text()}`;
    };
    return { daemon, call, closed: () => closed };
  };

  it('keeps answering while calls arrive, and closes after a quiet time', async () => {
    const { daemon, call, closed } = await start({ quiet: QUIET, most: 60 });
    let stopped = false;
    const stopping = daemon.stop().then(() => {
      stopped = true;
    });
    // Callers that have not noticed yet, for several times as long as the daemon waits for a call.
    const deadline = performance.now() + 4 * QUIET * 1000;
    let answered = 0;
    await eventually(async () => {
      assert.equal(await call(), '200 ok');
      answered++;
      assert.ok(!stopped && closed() === 0);
      return performance.now() > deadline;
    }, 'the end of the calls');
    await stopping;
    assert.equal(closed(), 1);
    assert.ok(answered > 0);
    await assert.rejects(call());
  });

  it('exits with status 1 if its work fails', async () => {
    const { log, lines } = recordingLogger();
    const daemon = createServingDaemon({
      server: serverOf(() => undefined, { log }),
      probes: PROBES,
      registry: createRegistry(),
      log,
      notReady: () => undefined,
      run: async () => Promise.reject(new Error('a mistake')),
      close: async () => undefined,
      drain: { quiet: 0, most: 0 },
    });
    const exited = new Promise((resolve) => {
      mock.method(process, 'exit', (status: number) => resolve(status));
    });
    const signals = ['SIGTERM', 'SIGINT'] as const;
    const before = signals.map((signal) => process.listeners(signal));
    await runDaemon(daemon, { log });
    assert.equal(await exited, 1);
    mock.restoreAll();
    for (const [i, signal] of signals.entries()) {
      for (const added of process.listeners(signal).filter((one) => !before[i]?.includes(one)))
        process.off(signal, added);
    }
    const fatal = lines.filter(({ level }) => level === 60).map(({ msg, err }) => `${msg}: ${(err as Error).message}`);
    assert.deepEqual(fatal, ['the daemon’s work failed; stopping: a mistake']);
  });

  it('finally closes even if calls keep arriving', async () => {
    const { daemon, call, closed } = await start({ quiet: 60, most: 0.5 });
    let stopped = false;
    const stopping = daemon.stop().then(() => {
      stopped = true;
    });
    while (!stopped) await call().catch(() => delay(20));
    await stopping;
    assert.equal(closed(), 1);
  });
});
