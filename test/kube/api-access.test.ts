import assert from 'node:assert/strict';
import { join } from 'node:path';
import { apiAccess } from '../../kube/api-access.ts';
import { ConfigError } from '../../runtime/config.ts';
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
