import assert from 'node:assert/strict';
import { join } from 'node:path';
import { stringify } from 'yaml';
import { apiAccess, kubeconfigAccess } from '../../kube/api-access.ts';
import { ConfigError } from '../../runtime/config.ts';
import { replaceFile, tempDirectories, writeTree } from '../support/files.ts';

const encode = (text: string) => Buffer.from(text).toString('base64');
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

    it('has the address of the Service, with brackets around an IPv6 address', () => {
      assert.equal(inPod(account()).server, 'https://10.96.0.1:443');
      assert.equal(inPod(account(), 'fd00::1', 6443).server, 'https://[fd00::1]:6443');
    });

    it('has the CA of the service account, and its token as the kubelet last wrote it', async () => {
      const directory = account();
      const access = inPod(directory);
      assert.deepEqual(await access.requestOptions(), {
        ca: Buffer.from('CA'),
        headers: { authorization: 'Bearer first' },
      });
      replaceFile(join(directory, 'token'), 'second\n');
      assert.deepEqual((await access.requestOptions()).headers, { authorization: 'Bearer second' });
      assert.deepEqual([access.token(), access.tokenFile], ['second', undefined]);
    });

    it('names a missing file of the service account', () => {
      assert.throws(
        () => inPod(account({ token: 't' })),
        isConfigError(/cannot read .*ca\.crt: .*; give --kubeconfig/),
      );
      const access = inPod(account({ 'ca.crt': 'CA' }));
      assert.throws(() => access.token(), isConfigError(/cannot read .*token/));
    });

    it('comes second to a kubeconfig', () => {
      const directory = account();
      const kubeconfig = join(directory, 'missing');
      assert.throws(
        () => apiAccess({ kubeconfig, serviceHost: '10.96.0.1', servicePort: 443, serviceAccount: directory }),
        isConfigError(/missing/),
      );
    });
  });

  describe('from a kubeconfig', () => {
    const CLUSTER = { server: 'https://api.example.org:6443' };
    const given = (cluster: object, user: object, more: object = {}, files: Readonly<Record<string, string>> = {}) => {
      const directory = temp();
      const content = {
        'current-context': 'x',
        contexts: [
          { name: 'other', context: { cluster: 'other', user: 'other' } },
          { name: 'x', context: { cluster: 'c', user: 'u' } },
        ],
        clusters: [
          { name: 'other', cluster: { server: 'https://other.example.org' } },
          { name: 'c', cluster },
        ],
        users: [
          { name: 'other', user: { token: 'other' } },
          { name: 'u', user },
        ],
        ...more,
      };
      writeTree(directory, { kubeconfig: stringify(content), ...files });
      return kubeconfigAccess(join(directory, 'kubeconfig'));
    };
    const NOTHING = { ca: undefined, cert: undefined, key: undefined, rejectUnauthorized: true };

    it('has the cluster and the user of the current context, and the server without slashes at its end', async () => {
      const access = given({ server: 'https://api.example.org:6443//' }, { token: 't' });
      assert.deepEqual(
        [access.server, access.token(), access.tokenFile],
        ['https://api.example.org:6443', 't', undefined],
      );
      assert.deepEqual(await access.requestOptions(), { ...NOTHING, headers: { authorization: 'Bearer t' } });
    });

    it('has the first of several entries with one name', () => {
      const twice = (one: object, another: object) => [one, another].map((content) => ({ name: 'x', ...content }));
      const access = given(
        {},
        {},
        {
          contexts: twice({ context: { cluster: 'x', user: 'x' } }, { context: { cluster: 'y', user: 'y' } }),
          clusters: twice({ cluster: { server: 'https://first' } }, { cluster: { server: 'https://second' } }),
          users: twice({ user: { token: 'first' } }, { user: { token: 'second' } }),
        },
      );
      assert.deepEqual([access.server, access.token()], ['https://first', 'first']);
    });

    it('has no headers without a token', async () => {
      assert.deepEqual(await given(CLUSTER, {}).requestOptions(), NOTHING);
    });

    it('prefers data to files, and looks for files next to the kubeconfig', async () => {
      const files = { 'pki/ca': 'CA of a file', 'pki/cert': 'cert of a file', 'pki/key': 'key of a file' };
      const cluster = { ...CLUSTER, 'certificate-authority': 'pki/ca' };
      const user = { 'client-certificate': 'pki/cert', 'client-key': 'pki/key' };
      const read = async (access: ReturnType<typeof given>) => {
        const { ca, cert, key } = await access.requestOptions();
        return [ca, cert, key].map(String);
      };
      assert.deepEqual(await read(given(cluster, user, {}, files)), Object.values(files));
      const data = {
        cluster: { ...cluster, 'certificate-authority-data': encode('CA') },
        user: { ...user, 'client-certificate-data': encode('cert'), 'client-key-data': encode('key') },
      };
      assert.deepEqual(await read(given(data.cluster, data.user, {}, files)), ['CA', 'cert', 'key']);
    });

    it('reads the token from its file for each request, next to a token of the kubeconfig', async () => {
      const access = given(CLUSTER, { token: 'static', tokenFile: 'token' }, {}, { token: 'first\n' });
      assert.equal(access.token(), 'first');
      replaceFile(access.tokenFile ?? '', 'second\n');
      assert.deepEqual((await access.requestOptions()).headers, { authorization: 'Bearer second' });
    });

    it('passes the name of the server and insecure-skip-tls-verify on', async () => {
      const cluster = { ...CLUSTER, 'tls-server-name': 'kubernetes', 'insecure-skip-tls-verify': true };
      assert.deepEqual(await given(cluster, {}).requestOptions(), {
        ...NOTHING,
        rejectUnauthorized: false,
        servername: 'kubernetes',
      });
    });

    const REFUSED: Readonly<Record<string, readonly [cluster: object, user: object, more: object, message: RegExp]>> = {
      'a context that the file does not have': [
        CLUSTER,
        {},
        { 'current-context': 'y' },
        /its current-context y names no/,
      ],
      'a context without its cluster': [
        CLUSTER,
        {},
        { clusters: [] },
        /its current-context x names no cluster and user/,
      ],
      'a context without its user': [CLUSTER, {}, { users: [] }, /its current-context x names no cluster and user/],
      'a plugin that a command runs': [
        CLUSTER,
        { exec: { command: 'aws' } },
        {},
        /credential plugins are not supported/,
      ],
      'a plugin of an old kind': [CLUSTER, { 'auth-provider': { name: 'gcp' } }, {}, /plugins are not supported/],
      'an empty token': [CLUSTER, { token: '' }, {}, /no usable kubeconfig: users\.1\.user\.token: /],
      'a server that is no URL': [{ server: 'api' }, {}, {}, /no usable kubeconfig: clusters\.1\.cluster\.server: /],
    };
    for (const [what, [cluster, user, more, message]] of Object.entries(REFUSED)) {
      it(`refuses ${what}`, () => {
        assert.throws(() => given(cluster, user, more), isConfigError(message));
      });
    }

    it('reports a YAML error in one line', () => {
      const directory = temp();
      writeTree(directory, { kubeconfig: 'a: [\nb: {\n' });
      assert.throws(
        () => kubeconfigAccess(join(directory, 'kubeconfig')),
        (error) => isConfigError(/kubeconfig: not YAML: \S/)(error) && !(error as Error).message.includes('\n'),
      );
    });
  });
});
