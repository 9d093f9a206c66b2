import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type IncomingHttpHeaders } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import type { Socket } from 'node:net';
import { KubeConfig } from '@kubernetes/client-node';
import { WebSocketServer } from 'ws';
import { askInCluster } from '../../cli/extender/ask.ts';
import { type KubeClient, KubeError } from '../../kube/client.ts';
import { createCertificateAuthority } from '../../sandbox/certificates.ts';
import { eventually } from '../support/eventually.ts';
import { listenOnLoopback } from '../support/processes.ts';

type ExtenderResponse = Awaited<ReturnType<typeof askInCluster>>;

const PROTOCOL = 'v4.channel.k8s.io';
const HOLDER = 'plumbline-scheduler-7d9f8-x2x4z_d0330f3f-eaf2-4fbe-8f41-97b5e8dc94df';
/** The port 8082 in two bytes, with which both channels begin. */
const PORT = [0x92, 0x1f];
/** The port 8091. */
const LOOPBACK_PORT = [0x9b, 0x1f];
const [DATA, ERROR] = [0, 1];

/** The kubelet's side of an open WebSocket. */
interface Channels {
  close(): void;
  on(channel: number, ...bytes: (number | string)[]): void;
}

/** How a stand-in of the API server handles a WebSocket. */
type Serve = (channels: Channels, requested: Promise<void>) => void;
type Refuse = number | 'hang';

type Case = readonly [title: string, serve: Serve | Refuse, expected: ExtenderResponse | RegExp];

const ok = (body: string) => `HTTP/1.1 200 OK\r\ncontent-length: ${body.length}\r\nconnection: close\r\n\r\n${body}`;
/** After the request has arrived. */
const answers =
  (send: (channels: Channels) => void): Serve =>
  (channels, requested) =>
    void requested.then(() => send(channels));

/** After the request, the port of the data channel and these. */
const answersWith = (...parts: string[]) => answers((channels) => channels.on(DATA, ...PORT, ...parts));
const NOT_SYNCED = 'HTTP/1.1 503 \r\ncontent-length: 22\r\n\r\nplumbline: not synced\n';
const LARGE = 'x'.repeat(200_000);

const CASES: readonly Case[] = [
  [
    'an answer in pieces after the ports of both channels',
    answers((channels) => {
      channels.on(DATA, ...PORT);
      channels.on(ERROR, ...PORT);
      const text = ok('{"active":true}');
      channels.on(DATA, text.slice(0, 30));
      channels.on(DATA, text.slice(30));
      channels.close();
    }),
    { answer: { active: true } },
  ],
  ['an answer of more than one frame size', answersWith(ok(JSON.stringify(LARGE))), { answer: LARGE }],
  [
    'an error of the kubelet after the request',
    answers((channels) => {
      channels.on(ERROR, ...PORT);
      channels.on(ERROR, 'exit status 1\nmore of it');
    }),
    /did not answer \(exit status 1\)$/,
  ],
  [
    'an immediate error of the kubelet',
    (channels) => channels.on(ERROR, ...PORT, 'dial tcp4 127.0.0.1:8082: connection refused\n'),
    /did not answer \(connection refused\)$/,
  ],
  ['closed before an answer', answers((channels) => channels.close()), /did not answer \(socket hang up\)$/],
  ['invalid HTTP', answersWith('hello\r\n\r\n'), /did not answer \(Parse Error/],
  ['invalid JSON', answersWith(ok('hello')), /did not answer \(Unexpected token/],
  ['an extender that is not ready', answersWith(NOT_SYNCED), /did not answer \(plumbline: not synced\)$/],
  ['a message that is too large', answersWith('x'.repeat(2 * 1024 * 1024)), /\(Max payload size exceeded\)$/],
  ['403', 403, /^you may not reach the extender \(pods\/portforward in plumbline-system\)$/],
  ['404', 404, /^the pod plumbline-scheduler-\S+, which leads plumbline-scheduler, is gone$/],
  ['500', 500, /did not answer \(500: check that the API server reaches the kubelet of that node\)$/],
  ['no answer to the handshake', 'hang', /did not answer \(no answer in time\)$/],
];

const REASONS: Readonly<Record<number, string>> = { 403: 'Forbidden', 404: 'Not Found', 500: 'Internal Server Error' };

type StandIn = Awaited<ReturnType<typeof standIn>>;

/** @param tls with its own client certificate and a name other than its address */
async function standIn(serve: Serve | Refuse, tls = false) {
  const authority = createCertificateAuthority('api');
  const requests: { readonly url: string; readonly headers: IncomingHttpHeaders; text: string }[] = [];
  const open = new Set<Socket>();
  const serving = { ...authority.issue(['kubernetes.example']), ca: authority.cert, requestCert: true };
  const server = tls ? createTlsServer(serving) : createServer();
  server.on('connection', (socket: Socket) => {
    open.add(socket);
    socket.on('error', () => undefined).once('close', () => open.delete(socket));
  });
  const sockets = new WebSocketServer({ noServer: true, handleProtocols: () => PROTOCOL });
  server.on('upgrade', (request, socket: Socket, head) => {
    // Otherwise the server's sockets stay half open.
    socket.on('error', () => undefined).on('end', () => socket.end());
    socket.resume();
    const seen = { url: request.url ?? '', headers: request.headers, text: '' };
    requests.push(seen);
    if (typeof serve === 'number') {
      socket.end(`HTTP/1.1 ${serve} ${REASONS[serve]}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n`);
    } else if (serve !== 'hang') {
      const whole = new AbortController();
      const requested = once(whole.signal, 'abort').then(() => undefined);
      sockets.handleUpgrade(request, socket, head, (connection) => {
        connection.on('message', (message: Buffer) => {
          if (message[0] === DATA) seen.text += message.subarray(1).toString();
          if (seen.text.endsWith('\r\n\r\n')) whole.abort();
        });
        const bytesOf = (part: number | string) => (typeof part === 'number' ? Buffer.of(part) : Buffer.from(part));
        const on = (...parts: (number | string)[]) => connection.send(Buffer.concat(parts.map(bytesOf)));
        serve({ on, close: () => connection.close() }, requested);
      });
    }
  });
  const port = await listenOnLoopback(server);
  const client = authority.issue(['client']);
  const encode = (pem: string) => Buffer.from(pem).toString('base64');
  const configOf = (tlsServerName: string): KubeConfig => {
    const config = new KubeConfig();
    const url = `${tls ? 'https' : 'http'}://127.0.0.1:${port}`;
    const user = { name: 'me', token: 'secret' };
    if (tls) {
      config.loadFromClusterAndUser(
        { name: 'one', server: url, caData: encode(authority.cert), tlsServerName, skipTLSVerify: false },
        { ...user, certData: encode(client.cert), keyData: encode(client.key) },
      );
    } else config.loadFromClusterAndUser({ name: 'one', server: url, skipTLSVerify: true }, user);
    return config;
  };
  const stop = async () => {
    for (const socket of open) socket.destroy();
    await new Promise((resolve) => server.close(resolve));
  };
  /** `configOf` has another tls-server-name; `open` are connections. */
  return { config: configOf('kubernetes.example'), configOf, requests, open, stop };
}

/** A client that only gets requests for Leases. By default, the cluster's own kube-scheduler has none. */
function clientOf(sidecar: unknown, own: unknown = status(404)): Pick<KubeClient, 'get'> {
  return {
    get: async (path) => {
      const found = path.endsWith('/kube-system/leases/kube-scheduler') ? own : sidecar;
      if (found instanceof Error) throw found;
      return found;
    },
  };
}
const LEASE = { metadata: {}, spec: { holderIdentity: HOLDER, renewTime: new Date().toISOString() } };
const RELEASED = { metadata: {} };
/** Its holder is a node. */
const OWN_LEASE = { metadata: {}, spec: { ...LEASE.spec, holderIdentity: 'cp-1.example_0f3a' } };
const status = (code: number) => new KubeError(code, `HTTP${code}`, `GET: ${code}`);

describe('a request to the extender in kube-scheduler’s pod', function () {
  this.timeout(300_000);
  let server: StandIn;
  afterEach(() => server.stop());
  const ask = (client = clientOf(LEASE), config = server.config) =>
    askInCluster({ client: client as KubeClient, config }, { pod: 'a/b' });
  const why = (response: ExtenderResponse) => ('missing' in response ? response.why : 'it answered');

  for (const [title, serve, expected] of CASES) {
    it(title, async () => {
      server = await standIn(serve);
      const response = await ask();
      if (!(expected instanceof RegExp)) assert.deepEqual(response, expected);
      else assert.match(why(response), expected);
      await eventually(() => server.open.size === 0, 'the connection is closed');
    });
  }

  it('sends the path, the subprotocol, the credentials and the request', async () => {
    server = await standIn(answersWith(ok('{}')), true);
    assert.deepEqual(await ask(), { answer: {} });
    const [{ url, headers, text } = assert.fail()] = server.requests;
    const pod = 'plumbline-scheduler-7d9f8-x2x4z';
    assert.equal(url, `/api/v1/namespaces/plumbline-system/pods/${pod}/portforward?ports=8082`);
    assert.equal(headers.authorization, 'Bearer secret');
    assert.match(headers['sec-websocket-protocol'] ?? '', /\bv4\.channel\.k8s\.io\b/);
    assert.match(text, /^GET \/explain\?pod=a%2Fb HTTP\/1\.1\r\n/);
  });

  it('goes to the static pod on the host of the cluster’s own kube-scheduler, if Plumbline’s has no leader', async () => {
    const serve = answers((channels) => channels.on(DATA, ...LOOPBACK_PORT, ok('{}')));
    server = await standIn(serve, true);
    for (const sidecar of [status(404), RELEASED]) {
      assert.deepEqual(await ask(clientOf(sidecar, OWN_LEASE)), { answer: {} });
      const pod = 'plumbline-scheduler-plugin-cp-1.example';
      const path = `/api/v1/namespaces/kube-system/pods/${pod}/portforward?ports=8091`;
      assert.equal(server.requests.at(-1)?.url, path);
    }
  });

  it('is not sent to a server with another certificate', async () => {
    server = await standIn(403, true);
    const response = await ask(clientOf(LEASE), server.configOf('another.example'));
    assert.match(why(response), /Hostname\/IP does not match/);
    assert.deepEqual(server.requests, []);
  });

  describe('without an answer, because of', () => {
    const NOTHING = /^there is no plumbline-scheduler, and no extender next to kube-scheduler$/;
    const TABLE: readonly (readonly [string, unknown, unknown, RegExp])[] = [
      ['no Lease at all', status(404), status(404), NOTHING],
      ['no Lease, and a kube-scheduler without an extender', status(404), OWN_LEASE, NOTHING],
      ['a released Lease', RELEASED, status(404), /^no replica of plumbline-scheduler is the leader$/],
      ['a leader that is gone', LEASE, OWN_LEASE, /^the pod plumbline-scheduler-\S+, which leads .* is gone$/],
      ['a Lease that may not be read', status(403), status(404), /^you may not .*\(leases in plumbline-system\)$/],
      ['no Lease, and another that may not be read', status(404), status(403), NOTHING],
    ];
    for (const [title, sidecar, own, expected] of TABLE) {
      it(title, async () => {
        server = await standIn(404);
        assert.match(why(await ask(clientOf(sidecar, own))), expected);
      });
    }
  });
});
