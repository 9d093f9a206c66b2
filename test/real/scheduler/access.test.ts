import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { request as httpRequest } from 'node:http';
import { request } from 'node:https';
import { createCertificateAuthority, type KeyedCertificate } from '../../../sandbox/certificates.ts';
import { needs } from '../../support/parts.ts';
import { until } from '../../support/until.ts';
import { freePort } from '../processes.ts';
import { launcher } from './extender-call.ts';
import { type Replica, SERVER_NAME, type Stage, startStage } from './stage.ts';

const FILTER = JSON.stringify({ Pod: launcher('a', '4'), NodeNames: ['n0'] });
const POD = JSON.stringify(launcher('b', '4'));

interface Call {
  readonly method?: string;
  readonly body?: string;
  readonly token?: string;
  readonly certificate?: KeyedCertificate;
}

/** Permission to call the extender behind its Service, and to ask it about pods. */
describe('callers of the extender behind its Service', function () {
  needs('controlPlane');
  needs('kubectl');
  this.timeout(300_000);
  let stage: Stage;
  let replica: Replica;
  let explainPort: number;
  const tokens: Record<string, string> = {};

  before(async () => {
    stage = await startStage();
    explainPort = await freePort();
    replica = await stage.startReplica({ args: ['--explain-address', `127.0.0.1:${explainPort}`] });
    await until('the replica to be active', () => replica.isActive());
    await stage.addNodes([{ name: 'n0' }]);
    await stage.addPod({ name: 'waits', cpu: '4' });
    const names = ['outsider', 'tenant', 'operator'];
    for (const name of names) {
      await stage.plane.create({
        apiVersion: 'v1',
        kind: 'ServiceAccount',
        metadata: { name, namespace: 'default' },
      });
      tokens[name] = await stage.plane.serviceAccountToken('default', name);
    }
    const rbac = 'rbac.authorization.k8s.io';
    const subject = (name: string) => [{ kind: 'ServiceAccount', name, namespace: 'default' }];
    const view = { apiGroup: rbac, kind: 'ClusterRole', name: 'pods' };
    await stage.plane.create(
      {
        apiVersion: `${rbac}/v1`,
        kind: 'ClusterRole',
        metadata: { name: 'pods' },
        rules: [{ apiGroups: [''], resources: ['pods'], verbs: ['get', 'list'] }],
      },
      {
        apiVersion: `${rbac}/v1`,
        kind: 'RoleBinding',
        metadata: { name: 'tenant', namespace: 'default' },
        roleRef: view,
        subjects: subject('tenant'),
      },
      {
        apiVersion: `${rbac}/v1`,
        kind: 'ClusterRoleBinding',
        metadata: { name: 'operator' },
        roleRef: view,
        subjects: subject('operator'),
      },
    );
  });
  after(() => stage?.stop());

  const call = (path: string, { method = 'GET', body, token, certificate }: Call = {}) =>
    new Promise<{ status: number; text: string }>((resolve, reject) => {
      const tls = { ca: stage.ca, servername: SERVER_NAME, agent: false as const, ...certificate };
      const headers = {
        ...(body !== undefined && { 'content-length': Buffer.byteLength(body) }),
        ...(token !== undefined && { authorization: `Bearer ${token}` }),
      };
      const one = request({ host: '127.0.0.1', port: replica.port, path, method, headers, ...tls }, (response) => {
        let text = '';
        response.setEncoding('utf8').on('data', (chunk: string) => {
          text += chunk;
        });
        response.on('error', reject).on('end', () => resolve({ status: response.statusCode ?? 0, text }));
      });
      one.on('error', reject).end(body);
    });
  const status = async (path: string, options?: Call) => (await call(path, options)).status;
  const logged = () => readFileSync(replica.logFile, 'utf8');

  it('the roles take effect', async () => {
    const asked = async (who: string) => status('/explain?pod=default/waits', { token: tokens[who] ?? '' });
    for (const who of ['tenant', 'operator']) await until(`the role of ${who}`, async () => (await asked(who)) === 200);
  });

  it('the scheduler’s certificate allows every verb and every explanation', async () => {
    const certificate = stage.clientCertificate;
    const { text } = await call('/filter', { method: 'POST', body: FILTER, certificate });
    assert.deepEqual((JSON.parse(text) as { NodeNames: string[] }).NodeNames, ['n0']);
    assert.equal(await status('/explain', { certificate }), 200);
  });

  it('no others with a certificate are allowed, even one of the same authority', async () => {
    for (const certificate of [
      stage.certificate,
      createCertificateAuthority('plumbline-ca').issue(['plumbline-scheduler-client']),
    ]) {
      await assert.rejects(call('/filter', { method: 'POST', body: FILTER, certificate }));
      await assert.rejects(call('/explain', { certificate, token: tokens['operator'] ?? '' }));
    }
    assert.match(logged(), /connection closed: client certificate not allowed/);
  });

  it('a token allows no verb', async () => {
    for (const path of ['/filter', '/prioritize', '/preempt', '/Explain', '/explain/', '//explain', '/x/../explain'])
      assert.equal(await status(path, { method: 'POST', body: FILTER, token: tokens['operator'] ?? '' }), 401, path);
  });

  const QUESTIONS: readonly (readonly [what: string, path: string, options?: Call])[] = [
    ['a pod of the namespace', '/explain?pod=default/waits'],
    ['a pod of another namespace', '/explain?pod=kube-system/waits'],
    ['the last decisions', '/explain'],
    ['a pod that does not exist', '/explain', { method: 'POST', body: POD }],
    ['a name given twice', '/explain?pod=default/waits&pod=kube-system/waits'],
  ];
  const EXPECTED: Readonly<Record<string, readonly number[]>> = {
    // 400: the request is allowed, but there is no such pod.
    operator: [200, 400, 200, 200, 200],
    tenant: [200, 403, 403, 403, 403],
    outsider: [403, 403, 403, 403, 403],
  };
  for (const [who, expected] of Object.entries(EXPECTED)) {
    it(`the token of ${who}: ${QUESTIONS.map(([what], i) => `${what} ${expected[i]}`).join(', ')}`, async () => {
      for (const [i, [what, path, options]] of QUESTIONS.entries())
        assert.equal(await status(path, { ...options, token: tokens[who] ?? '' }), expected[i], what);
    });
  }

  it('a missing, a forged and a changed token: 401', async () => {
    const [header, , signature] = (tokens['operator'] ?? '').split('.');
    const forged = Buffer.from(JSON.stringify({ sub: 'system:serviceaccount:kube-system:admin' })).toString(
      'base64url',
    );
    assert.equal(await status('/explain?pod=default/waits'), 401);
    assert.equal(await status('/explain?pod=default/waits', { token: 'forged' }), 401);
    assert.equal(await status('/explain?pod=default/waits', { token: `${header}.${forged}.${signature}` }), 401);
    assert.doesNotMatch(logged(), new RegExp(signature ?? ''));
  });

  it('a flood of tokens gets 429 and does not reach the API server', async () => {
    const statuses = await Promise.all(
      Array.from({ length: 60 }, (_, i) => status('/explain?pod=default/waits', { token: `flood-${i}` })),
    );
    assert.deepEqual([...new Set(statuses)].toSorted(), [401, 429]);
    assert.ok(statuses.filter((one) => one === 429).length >= 30);
  });

  it('a user who may forward the pod’s port gets only explanations, over loopback', async () => {
    const ask = async (path: string, init: RequestInit = {}) =>
      (await fetch(`http://127.0.0.1:${explainPort}${path}`, init)).status;
    assert.equal(await ask('/explain?pod=default/waits'), 200);
    assert.equal(await ask('/explain', { method: 'POST', body: POD }), 200);
    assert.equal(await ask('/filter', { method: 'POST', body: FILTER }), 404);
    assert.equal(await askAs('attacker.example'), 421);
  });

  /** With another Host header, which fetch does not send. */
  const askAs = (host: string) =>
    new Promise<number>((resolve, reject) => {
      const to = { host: '127.0.0.1', port: explainPort, path: '/explain', headers: { host } };
      httpRequest(to, (response) => resolve(response.resume().statusCode ?? 0))
        .on('error', reject)
        .end();
    });
});
