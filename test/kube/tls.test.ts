import assert from 'node:assert/strict';
import { createServer as createHttpServer } from 'node:http';
import { createServer } from 'node:https';
import { type AddressInfo, connect } from 'node:net';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { text } from 'node:stream/consumers';
import type { TLSSocket } from 'node:tls';
import { createKubeClient, KubeError } from '../../kube/client.ts';
import { kubeconfigAccess } from '../../kube/kubeconfig.ts';
import { createCertificateAuthority, type KeyedCertificate } from '../../sandbox/certificates.ts';
import { tempDirectories, writeTree } from '../node-agent/support.ts';
import { kubeconfigText } from './api-fixture.ts';

const DAY = 86_400_000;
const authority = createCertificateAuthority('api');
const foreign = createCertificateAuthority('elsewhere');
const valid = authority.issue(['127.0.0.1']);
const named = authority.issue(['kubernetes.example']);
const expired = authority.issue(['127.0.0.1'], { days: 1, now: Date.now() - 3 * DAY });
const me = authority.issue(['me']);
const stranger = foreign.issue(['me']);

const data = (pem: string) => Buffer.from(pem).toString('base64');
const TRUSTED = { 'certificate-authority-data': data(authority.cert) };
const FOREIGN = { 'certificate-authority-data': data(foreign.cert) };
const credentials = ({ cert, key }: KeyedCertificate) => ({
  'client-certificate-data': data(cert),
  'client-key-data': data(key),
});

/** The outcome is the common name of the client that the server saw, `none`; or why nothing was sent. */
const CASES: readonly (readonly [
  title: string,
  serving: KeyedCertificate,
  cluster: object,
  outcome: string | RegExp,
  user?: object,
])[] = [
  ['a valid chain', valid, TRUSTED, 'none'],
  ['a foreign CA', valid, FOREIGN, /unable to verify|self-signed/],
  ['an expired certificate', expired, TRUSTED, /certificate has expired/],
  ['a certificate of another name', named, TRUSTED, /does not match certificate/],
  ['tls-server-name with that name', named, { ...TRUSTED, 'tls-server-name': 'kubernetes.example' }, 'none'],
  ['insecure-skip-tls-verify with any certificate', expired, { 'insecure-skip-tls-verify': true }, 'none'],
  ['a client certificate', valid, TRUSTED, 'me', credentials(me)],
  ['a client certificate in files', valid, TRUSTED, 'me', { 'client-certificate': 'me.crt', 'client-key': 'me.key' }],
  [
    'a client certificate with another key',
    valid,
    TRUSTED,
    /key values mismatch/,
    { ...credentials(me), 'client-key-data': data(stranger.key) },
  ],
];

const unreachableFor = (why: RegExp) => (error: unknown) => {
  assert.ok(error instanceof KubeError);
  assert.deepEqual([error.status, error.reason], [0, 'Unreachable']);
  assert.match(error.message, why);
  return true;
};

describe('TLS to the API server', () => {
  const temp = tempDirectories();
  const servers: { close(): unknown; closeAllConnections(): void }[] = [];
  after(() => {
    for (const server of servers) {
      server.close();
      server.closeAllConnections();
    }
  });

  /** Answers with the common name of the client's certificate if the CA issued it. */
  const serve = async ({ cert, key }: KeyedCertificate) => {
    const options = { cert, key, ca: authority.cert, requestCert: true, rejectUnauthorized: false };
    let requests = 0;
    const server = createServer(options, ({ socket }, response) => {
      requests++;
      const tls = socket as TLSSocket;
      response.end(JSON.stringify({ client: tls.authorized ? tls.getPeerCertificate().subject.CN : 'none' }));
    });
    servers.push(server);
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    return { url: `https://127.0.0.1:${(server.address() as AddressInfo).port}`, requests: () => requests };
  };

  /** An HTTP proxy, and the addresses to which it has connected. */
  const startProxy = async () => {
    const targets: string[] = [];
    const proxy = createHttpServer().on('connect', ({ url = '' }, client) => {
      targets.push(url);
      const { hostname, port } = new URL(`https://${url}`);
      const upstream = connect(Number(port), hostname, () => {
        client.write('HTTP/1.1 200 Connection established\r\n\r\n');
        client.pipe(upstream).pipe(client);
      });
      for (const socket of [client, upstream]) socket.on('error', () => undefined);
    });
    servers.push(proxy);
    await new Promise<void>((resolve) => proxy.listen(0, '127.0.0.1', resolve));
    return { url: `http://127.0.0.1:${(proxy.address() as AddressInfo).port}`, targets };
  };
  const clientOf = (cluster: object, user: object = { token: 't' }) => {
    const root = temp();
    writeTree(root, {
      kubeconfig: kubeconfigText(cluster, user),
      'me.crt': me.cert,
      'me.key': me.key,
    });
    return createKubeClient(kubeconfigAccess(join(root, 'kubeconfig')), 'test');
  };

  for (const [title, serving, cluster, outcome, user] of CASES) {
    it(title, async () => {
      const { url, requests } = await serve(serving);
      const client = clientOf({ server: url, ...cluster }, user);
      try {
        const get = client.get('/a');
        const watch = client.watch('/a', {});
        if (typeof outcome === 'string') {
          assert.deepEqual(await get, { client: outcome });
          assert.deepEqual(JSON.parse(await text(Readable.from(await watch))), { client: outcome });
        } else {
          for (const call of [get, watch]) await assert.rejects(call, unreachableFor(outcome));
        }
        assert.equal(requests(), typeof outcome === 'string' ? 2 : 0);
      } finally {
        await client.close();
      }
    });
  }

  it('passes through the proxy of the cluster (proxy-url), with the same checks', async () => {
    const { url } = await serve(valid);
    const proxy = await startProxy();
    const proxied = { server: url, 'proxy-url': proxy.url };
    const trusting = clientOf({ ...proxied, ...TRUSTED }, credentials(me));
    const wary = clientOf({ ...proxied, ...FOREIGN });
    try {
      assert.deepEqual(await trusting.get('/a'), { client: 'me' });
      await assert.rejects(wary.get('/a'), unreachableFor(/unable to verify|self-signed/));
      assert.deepEqual(proxy.targets, Array(2).fill(new URL(url).host));
    } finally {
      await Promise.all([trusting.close(), wary.close()]);
    }
  });
});
