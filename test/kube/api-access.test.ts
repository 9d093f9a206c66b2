import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { apiAccess } from '../../kube/api-access.ts';
import { ConfigError } from '../../runtime/config.ts';
import { createCertificateAuthority } from '../../sandbox/certificates.ts';
import { kubeconfig } from '../../sandbox/cluster/identities.ts';
import { root } from '../support/bundles.ts';
import { endsWithUs } from '../support/children.ts';
import { replaceFile, tempDirectories, writeTree } from '../support/files.ts';
import { kubeconfigText } from './api-fixture.ts';

const isConfigError = (message: RegExp) => (error: unknown) =>
  error instanceof ConfigError && message.test(error.message);

describe('the API access of a daemon', () => {
  const temp = tempDirectories();

  describe('in a pod', () => {
    const inPod = (serviceAccount: string, serviceHost = '10.96.0.1', servicePort = 443) =>
      apiAccess({ kubeconfig: undefined, serviceHost, servicePort, serviceAccount });
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
      assert.deepEqual(await access.requestOptions(), {
        ca: Buffer.from('CA'),
        headers: { authorization: 'Bearer first' },
      });
      replaceFile(join(directory, 'token'), 'second\n');
      assert.deepEqual((await access.requestOptions()).headers, { authorization: 'Bearer second' });
      assert.deepEqual([access.token(), access.tokenFile], ['second', undefined]);
    });

    it('names a missing file of the service account', async () => {
      await assert.rejects(
        inPod(account({ token: 't' })),
        isConfigError(/cannot read .*ca\.crt: .*; give --kubeconfig/),
      );
      const access = await inPod(account({ 'ca.crt': 'CA' }));
      assert.throws(() => access.token(), isConfigError(/cannot read .*token/));
    });

    it('comes second to a kubeconfig', async () => {
      const directory = account();
      const kubeconfig = join(directory, 'missing');
      await assert.rejects(
        apiAccess({ kubeconfig, serviceHost: '10.96.0.1', servicePort: 443, serviceAccount: directory }),
        isConfigError(/missing/),
      );
    });
  });

  describe('from a kubeconfig', () => {
    const fileWith = (user: object) => {
      const directory = temp();
      const kubeconfig = kubeconfigText({ server: 'https://api.example.org:6443//' }, user);
      writeTree(directory, { kubeconfig, token: 'first\n' });
      return join(directory, 'kubeconfig');
    };
    const access = (user: object) =>
      apiAccess({ kubeconfig: fileWith(user), serviceHost: undefined, servicePort: 443 });

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
      await assert.rejects(
        access({ exec: { command: 'aws' } }),
        isConfigError(/credential plugins are not supported here; use a token or a client certificate$/),
      );
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
        assert.match(
          await stderrText,
          new RegExp(
            `^plumbline-${name}: this is not a pod .*: give --kubeconfig\\n{"level":"fatal",.*"component":"${name}",.*"msg":"startup failed"}\\n$`,
          ),
        );
      } finally {
        child.kill('SIGKILL');
        server.close();
      }
    });
  }
});
