import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createServer as createHttpServer } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import { type AddressInfo, connect, createServer, type Server } from 'node:net';
import { join } from 'node:path';
import { type Duplex, Readable } from 'node:stream';
import { text } from 'node:stream/consumers';
import type { TLSSocket } from 'node:tls';
import { createKubeClient } from '../../kube/api-transport.ts';
import { apiAccess } from '../../kube/daemon-access.ts';
import { kubeconfigAccess } from '../../kube/kubeconfig.ts';
import { createCertificateAuthority } from '../../sandbox/certificates.ts';
import { kubeconfig } from '../../sandbox/cluster/identities.ts';
import { root } from '../support/bundles.ts';
import { endsWithUs } from '../support/children.ts';
import { replaceFile, tempDirectories, writeTree } from '../support/files.ts';
import { kubeconfigOf } from '../support/kubeconfig.ts';

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
type KeyedCertificate = ReturnType<typeof authority.issue>;

const credentials = ({ cert, key }: KeyedCertificate) => ({
  'client-certificate-data': data(cert),
  'client-key-data': data(key),
});
type Case = readonly [
  title: string,
  serving: KeyedCertificate,
  cluster: object,
  outcome: string | RegExp,
  user?: object,
];
const withKeyOf = (other: KeyedCertificate) => ({ ...credentials(me), 'client-key-data': data(other.key) });
/** The outcome is the common name of the client that the server saw, `none`; or why nothing was sent. */
const CASES: readonly Case[] = [
  ['a valid chain', valid, TRUSTED, 'none'],
  ['a foreign CA', valid, FOREIGN, /unable to verify|self-signed/],
  ['an expired certificate', expired, TRUSTED, /certificate has expired/],
  ['a certificate of another name', named, TRUSTED, /does not match certificate/],
  ['tls-server-name with that name', named, { ...TRUSTED, 'tls-server-name': 'kubernetes.example' }, 'none'],
  ['insecure-skip-tls-verify with any certificate', expired, { 'insecure-skip-tls-verify': true }, 'none'],
  ['a client certificate', valid, TRUSTED, 'me', credentials(me)],
  ['a client certificate in files', valid, TRUSTED, 'me', { 'client-certificate': 'me.crt', 'client-key': 'me.key' }],
  ['a client certificate with another key', valid, TRUSTED, /key values mismatch/, withKeyOf(stranger)],
];
const unreachableFor = (message: RegExp) => ({ name: 'KubeError', status: 0, reason: 'Unreachable', message });
describe('TLS to the API server', () => {
  const temp = tempDirectories();
  const servers: (Server & { closeAllConnections?(): void })[] = [];
  after(() => {
    for (const server of servers) server.close().closeAllConnections?.();
  });
  /** Starts a server that ends after the tests. @returns its address */
  const listen = async (server: Server) => {
    servers.push(server);
    await once(server.listen(0, '127.0.0.1'), 'listening');
    return `127.0.0.1:${(server.address() as AddressInfo).port}`;
  };

  /** Answers with the common name of the client's certificate if the CA issued it. */
  const serve = async ({ cert, key }: KeyedCertificate) => {
    const options = { cert, key, ca: authority.cert, requestCert: true, rejectUnauthorized: false };
    let requests = 0;
    const server = createTlsServer(options, ({ socket }, response) => {
      requests++;
      const tls = socket as TLSSocket;
      response.end(JSON.stringify({ client: tls.authorized ? tls.getPeerCertificate().subject.CN : 'none' }));
    });
    return { url: `https://${await listen(server)}`, requests: () => requests };
  };

  /** Connects a proxy's client with an address, after this greeting. */
  const tunnel = (client: Duplex, port: number, host: string, greeting: string | Buffer) => {
    const upstream = connect(port, host, () => {
      client.write(greeting);
      client.pipe(upstream).pipe(client);
    });
    for (const socket of [client, upstream]) socket.on('error', () => undefined);
  };
  /** An HTTP proxy, and the addresses to which it has connected. */
  const startProxy = async () => {
    const targets: string[] = [];
    const proxy = createHttpServer().on('connect', ({ url = '' }, client) => {
      targets.push(url);
      const { hostname, port } = new URL(`https://${url}`);
      tunnel(client, Number(port), hostname, 'HTTP/1.1 200 Connection established\r\n\r\n');
    });
    return { url: `http://${await listen(proxy)}`, targets };
  };
  /** SOCKS 5 without a password: one greeting, one request to connect to an IPv4 address (RFC 1928). */
  const startSocksProxy = async () => {
    const targets: string[] = [];
    const proxy = createServer((client) => {
      client.once('data', () => {
        client.write(Buffer.from([5, 0]));
        client.once('data', (request) => {
          const [address, port] = [request.subarray(4, 8).join('.'), request.readUInt16BE(8)];
          targets.push(`${address}:${port}`);
          tunnel(client, port, address, Buffer.from([5, 0, 0, 1, 0, 0, 0, 0, 0, 0]));
        });
      });
    });
    return { url: `socks5://${await listen(proxy)}`, targets };
  };
  const clientOf = (cluster: object, user: object = { token: 't' }) => {
    const root = temp();
    writeTree(root, { kubeconfig: JSON.stringify(kubeconfigOf(cluster, user)), 'me.crt': me.cert, 'me.key': me.key });
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

  for (const [kind, start] of [
    ['HTTP', startProxy],
    ['SOCKS', startSocksProxy],
  ] as const) {
    it(`passes through the ${kind} proxy of the cluster (proxy-url), with the same checks`, async () => {
      const [direct, renamed] = [await serve(valid), await serve(named)];
      const proxy = await start();
      const to = ({ url }: { readonly url: string }, trust: object) =>
        clientOf({ server: url, 'proxy-url': proxy.url, ...trust }, credentials(me));
      const clients = {
        trusting: to(direct, TRUSTED),
        wary: to(direct, FOREIGN),
        misled: to(renamed, TRUSTED),
        informed: to(renamed, { ...TRUSTED, 'tls-server-name': 'kubernetes.example' }),
      };
      try {
        assert.deepEqual(await clients.trusting.get('/a'), { client: 'me' });
        assert.deepEqual(await clients.informed.get('/a'), { client: 'me' });
        await assert.rejects(clients.wary.get('/a'), unreachableFor(/unable to verify|self-signed/));
        await assert.rejects(clients.misled.get('/a'), unreachableFor(/does not match certificate/));
        const hosts = [direct, renamed].map(({ url }) => new URL(url).host);
        assert.deepEqual(proxy.targets.toSorted(), [...hosts, ...hosts].toSorted());
      } finally {
        await Promise.all(Object.values(clients).map((client) => client.close()));
      }
    });
  }
});

const configError = (message: RegExp) => ({ name: 'ConfigError', message });
describe('the API access of a daemon', () => {
  const temp = tempDirectories();

  describe('in a pod', () => {
    const inPod = (serviceAccount: string, serviceHost = '10.96.0.1', servicePort = 443) =>
      apiAccess(undefined, { serviceHost, servicePort, serviceAccount });
    const account = (files: Readonly<Record<string, string>> = { 'ca.crt': 'CA', token: 'first\n' }) => {
      const directory = temp();
      writeTree(directory, files);
      return directory;
    };

    it('has the address of the Service, with brackets around an IPv6 address', async () => {
      assert.equal((await inPod(account())).server, 'https://10.96.0.1:443');
      assert.equal((await inPod(account(), 'fd00::1', 6443)).server, 'https://[fd00::1]:6443');
    });

    it('has the CA of the service account, and its token as the kubelet last wrote it', async () => {
      const directory = account();
      const access = await inPod(directory);
      const first = { ca: Buffer.from('CA'), headers: { authorization: 'Bearer first' } };
      assert.deepEqual(await access.requestOptions(), first);
      replaceFile(join(directory, 'token'), 'second\n');
      assert.deepEqual((await access.requestOptions()).headers, { authorization: 'Bearer second' });
      assert.deepEqual([access.token(), access.tokenFile], ['second', undefined]);
    });

    it('names a missing file of the service account', async () => {
      const withoutCa = inPod(account({ token: 't' }));
      await assert.rejects(withoutCa, configError(/cannot read .*ca\.crt: .*; give --kubeconfig/));
      const access = await inPod(account({ 'ca.crt': 'CA' }));
      assert.throws(() => access.token(), configError(/cannot read .*token/));
    });

    it('comes second to a kubeconfig', async () => {
      const directory = account();
      const pod = { serviceHost: '10.96.0.1', servicePort: 443, serviceAccount: directory };
      await assert.rejects(apiAccess(join(directory, 'missing'), pod), configError(/missing/));
    });
  });

  describe('from a kubeconfig', () => {
    const fileWith = (user: object) => {
      const directory = temp();
      const kubeconfig = JSON.stringify(kubeconfigOf({ server: 'https://api.example.org:6443//' }, user));
      writeTree(directory, { kubeconfig, token: 'first\n' });
      return join(directory, 'kubeconfig');
    };
    const access = (user: object) => apiAccess(fileWith(user));

    it('has the server without slashes at its end, and the token', async () => {
      const { server, token, tokenFile } = await access({ token: 't' });
      assert.deepEqual([server, token(), tokenFile], ['https://api.example.org:6443', 't', undefined]);
    });

    it('reads the token from its file for each request, in place of a token of the kubeconfig', async () => {
      const { token, tokenFile, requestOptions } = await access({ token: 'static', tokenFile: 'token' });
      assert.equal(token(), 'first');
      replaceFile(tokenFile ?? '', 'second\n');
      assert.equal(token(), 'second');
      assert.deepEqual((await requestOptions()).headers, { Authorization: 'Bearer second' });
    });

    it('refuses a credential plugin', async () => {
      const message = /credential plugins are not supported here; use a token or a client certificate$/;
      await assert.rejects(access({ exec: { command: 'aws' } }), configError(message));
    });
  });
});
const DAEMONS: Readonly<Record<string, readonly string[]>> = {
  webhook: [],
  'scheduler-plugin': [],
  'node-agent': ['--node-name', 'worker-0'],
};
describe('a daemon outside of a pod without --kubeconfig', function () {
  this.timeout(300_000);
  const temp = tempDirectories();

  for (const [name, args] of Object.entries(DAEMONS)) {
    it(`${name}: exits with 2, a line for people and a line of the log, and contacts no cluster of KUBECONFIG and ~/.kube/config`, async () => {
      const server = createServer((socket) => socket.destroy());
      const dialled = once(server, 'connection').then(() => 'it dialled the cluster of the current context');
      server.listen(0, '127.0.0.1');
      await once(server, 'listening');
      const home = temp();
      const { port } = server.address() as AddressInfo;
      const access = { server: `https://127.0.0.1:${port}`, ca: createCertificateAuthority('x').cert, token: 'secret' };
      writeTree(home, { '.kube/config': kubeconfig(access) });
      const env = { PATH: process.env['PATH'], HOME: home, KUBECONFIG: join(home, '.kube/config') };
      const program = ['--import', 'tsx', join(root, name, 'main.ts'), ...args];
      const child = spawn(process.execPath, program, { cwd: root, env, stdio: ['ignore', 'ignore', 'pipe'] });
      endsWithUs(child);
      const stderrText = text(child.stderr);
      const ended = once(child, 'exit').then(([status]) => status as number | null);
      try {
        assert.equal(await Promise.race([ended, dialled]), 2);
        const line = `plumbline-${name}: this is not a pod .*: give --kubeconfig`;
        const logLine = `{"level":"fatal",.*"component":"${name}",.*"msg":"startup failed"}`;
        assert.match(await stderrText, new RegExp(`^${line}\\n${logLine}\\n$`));
      } finally {
        child.kill('SIGKILL');
        server.close();
      }
    });
  }
});
