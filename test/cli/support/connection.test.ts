import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { stringify } from 'yaml';
import { findCluster } from '../../../cli/support/connection.ts';
import { endingOf } from '../../../cli/support/errors.ts';
import { EXIT } from '../../../cli/support/exit-status.ts';
import { accessOf } from '../../../kube/kubeconfig.ts';
import { tempDirectories, writeTree } from '../../node-agent/support.ts';

const API_VERSION = 'client.authentication.k8s.io/v1';
/** The command ends with status 3 and one line. */
const isUnreachable = (message: RegExp) => (error: unknown) => {
  const { status, line } = endingOf(error);
  return status === EXIT.unreachable && message.test(line) && !line.includes('\n');
};
const data = (text: string) => Buffer.from(text).toString('base64');

interface Given {
  readonly cluster?: object;
  readonly user?: object;
  readonly context?: object;
  readonly more?: object;
  readonly files?: Readonly<Record<string, string>>;
}

describe('credentials from a kubeconfig', () => {
  const temp = tempDirectories();

  const config = ({ cluster, user, context, more }: Given) => ({
    'current-context': 'here',
    contexts: [{ name: 'here', context: { cluster: 'one', user: 'me', ...context } }],
    clusters: [{ name: 'one', cluster: { server: 'https://one.example', ...cluster } }],
    users: [{ name: 'me', user }],
    ...more,
  });
  const written = (given: Given) => {
    const root = temp();
    writeTree(root, { config: stringify(config(given)), ...given.files });
    return { root, kubeconfig: join(root, 'config') };
  };
  const access = (given: Given) => {
    const { root, kubeconfig } = written(given);
    return { root, ...accessOf(findCluster({ kubeconfig })) };
  };
  const exec = (script: string, more: object = {}) => ({
    exec: { apiVersion: API_VERSION, command: 'sh', args: ['-c', script], ...more },
  });
  const credential = (status: object) => JSON.stringify({ apiVersion: API_VERSION, kind: 'ExecCredential', status });

  const bearer = (token: string) => ({ headers: { Authorization: `Bearer ${token}` } });
  const printed = (status: object) => exec(`echo '${credential(status)}'`);
  const PAIR = { 'client-certificate': 'pki/cert', 'client-key': 'pki/key' };
  const PEM = { ca: Buffer.from('ca'), cert: Buffer.from('cert'), key: Buffer.from('key') };
  const DATA = { 'client-certificate-data': data('cert'), 'client-key-data': data('key') };
  const SENT: readonly (readonly [string, Given, object])[] = [
    ['a token', { user: { token: 't' } }, bearer('t')],
    [
      'a token in a file next to the kubeconfig, with a newline',
      { user: { tokenFile: 'token', token: 'stale' }, files: { token: 'from-file\n' } },
      bearer('from-file'),
    ],
    [
      'data takes precedence over files',
      {
        cluster: { 'certificate-authority': 'gone', 'certificate-authority-data': data('ca') },
        user: { ...PAIR, ...DATA },
      },
      PEM,
    ],
    [
      'another user (as)',
      { user: { token: 't', as: 'jane' } },
      { headers: { ...bearer('t').headers, 'Impersonate-User': 'jane' } },
    ],
    [
      'a client certificate of a plugin',
      { user: printed({ clientCertificateData: 'cert', clientKeyData: 'key' }) },
      { cert: 'cert', key: 'key' },
    ],
    ['a plugin before a token', { user: { token: 'stale', ...printed({ token: 'fresh' }) } }, bearer('fresh')],
    [
      'certificates in files next to the kubeconfig, and the name in the certificate of the server',
      {
        cluster: {
          'certificate-authority': 'pki/ca',
          'tls-server-name': 'kubernetes',
          'insecure-skip-tls-verify': true,
        },
        user: PAIR,
        files: { 'pki/ca': 'ca', 'pki/cert': 'cert', 'pki/key': 'key' },
      },
      { ...PEM, servername: 'kubernetes', rejectUnauthorized: false },
    ],
  ];
  for (const [title, given, sent] of SENT) {
    it(title, async () => {
      const options = await access(given).requestOptions();
      assert.deepEqual(options, { headers: {}, ...sent });
    });
  }

  it('the first of two files with the same names takes precedence, and a missing one is ignored', async () => {
    const [first, second] = ['first', 'second'].map((token) => written({ user: { token } }).kubeconfig);
    const before = process.env['KUBECONFIG'];
    process.env['KUBECONFIG'] = `/nonexistent:${first}:${second}`;
    try {
      const { headers } = await accessOf(findCluster({})).requestOptions();
      assert.deepEqual(headers, { Authorization: 'Bearer first' });
    } finally {
      if (before === undefined) delete process.env['KUBECONFIG'];
      else process.env['KUBECONFIG'] = before;
    }
  });

  it('a plugin gets its API version, environment and the cluster', async () => {
    const given = { provideClusterInfo: true, env: [{ name: 'REGION', value: 'north' }] };
    const { root, requestOptions } = access({
      cluster: { 'certificate-authority': 'ca.crt', 'tls-server-name': 'api.example' },
      user: exec(`printf %s "$REGION $KUBERNETES_EXEC_INFO" >"$0"; echo '${credential({ token: 't' })}'`, given),
      files: { 'ca.crt': 'ca' },
    });
    // $0 of `sh -c` is its first argument, which the kubeconfig does not have: a file in the working directory.
    const directory = process.cwd();
    process.chdir(root);
    try {
      await requestOptions();
    } finally {
      process.chdir(directory);
    }
    const [region, ...info] = readFileSync(join(root, 'sh'), 'utf8').split(' ');
    assert.equal(region, 'north');
    const ca = { 'certificate-authority-data': data('ca'), 'tls-server-name': 'api.example' };
    const spec = { interactive: process.stdin.isTTY === true, cluster: { server: 'https://one.example', ...ca } };
    assert.deepEqual(JSON.parse(info.join(' ')), { apiVersion: API_VERSION, kind: 'ExecCredential', spec });
  });

  for (const [title, expirationTimestamp, runs] of [
    ['called once for any number of requests', new Date(Date.now() + 3_600_000).toISOString(), 1],
    ['called again for each request after its credential has expired', '2020-01-01T00:00:00Z', 8],
  ] as const) {
    it(`a plugin is ${title}`, async () => {
      const root = temp();
      const count = join(root, 'count');
      const script = `echo x >>${count}; echo '${credential({ token: 't', expirationTimestamp })}'`;
      const { requestOptions } = access({ user: exec(script) });
      await Promise.all(Array.from({ length: 8 }, requestOptions));
      assert.equal(readFileSync(count, 'utf8'), 'x\n'.repeat(runs));
    });
  }

  const CA_FILE = { 'certificate-authority': 'ca' };
  const NO_PLUGIN = { exec: { apiVersion: API_VERSION, command: 'no-such-plugin', installHint: 'Install it\nfirst' } };
  const LARGE_CA = { cluster: CA_FILE, files: { ca: 'x'.repeat(1024 * 1024 + 1) } };
  const NO_CURRENT = { more: { 'current-context': '' } };
  const NO_CERTIFICATE = { user: { 'client-certificate-data': 5 } };
  const REFUSED: readonly (readonly [string, Given, RegExp])[] = [
    ['a plugin with endless output', { user: exec('yes 2>/dev/null') }, /plugin sh .* cannot run: .*ENOBUFS/],
    ['a plugin with another answer', { user: exec('echo {}') }, /plugin sh .* did not return an ExecCredential$/],
    ['a missing token file', { user: { tokenFile: 'gone' } }, /^cannot read tokenFile .*\/gone of .*: ENOENT/],
    ['an endless token file', { user: { tokenFile: '/dev/zero' } }, /\/dev\/zero .*: it is larger than 1048576 bytes$/],
    ['a large CA', LARGE_CA, /cannot read certificate-authority .*\/ca .*: it is larger than 1048576 bytes$/],
    ['groups (as-groups)', { user: { as: 'jane', 'as-groups': ['ops'] } }, /as-groups is not supported; imp/],
    ['a cluster without a server', { cluster: { server: '' } }, /cluster one, which is missing or has no server/],
    ['no current context', NO_CURRENT, /no current context; choose one with --context \(here\)/],
    ['an unknown context', { more: { 'current-context': 'there' } }, /no context there; choose one of here/],
    ['a missing plugin', { user: NO_PLUGIN }, /no-such-plugin of the kubeconfig cannot run: .*; Install it first/],
    ['a failing plugin', { user: exec('false') }, /plugin sh of the kubeconfig failed \(status 1\)/],
    ['a missing CA', { cluster: CA_FILE }, /certificate-authority .*\/ca of .*: ENOENT/],
    ['a server that is no URL', { cluster: { server: 'https://a b' } }, /the server "https:\/\/a b" is not a URL/],
    ['a context without its user', { more: { users: [] } }, /context here names user me, which is missing/],
    ['a certificate of the wrong kind', NO_CERTIFICATE, /users.0.user.client-certificate-data: /],
  ];
  for (const [title, given, message] of REFUSED) {
    it(`refuses ${title}`, async () => {
      const { kubeconfig } = written(given);
      await assert.rejects(async () => accessOf(findCluster({ kubeconfig })).requestOptions(), isUnreachable(message));
    });
  }

  it('refuses an endless kubeconfig', () => {
    const message = /cannot read the kubeconfig \/dev\/zero: it is larger/;
    assert.throws(() => findCluster({ kubeconfig: '/dev/zero' }), isUnreachable(message));
  });

  it('does not quote an invalid YAML file, which may contain a token', () => {
    const root = temp();
    writeTree(root, { config: 'users:\n- name: me\n  user: {token: very-secret\n' });
    assert.throws(
      () => findCluster({ kubeconfig: join(root, 'config') }),
      (error) =>
        isUnreachable(/cannot read the kubeconfig/)(error) && !(error as Error).message.includes('very-secret'),
    );
  });
});
