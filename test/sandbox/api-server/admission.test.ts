import assert from 'node:assert/strict';
import { createCertificateAuthority } from '../../../sandbox/certificates.ts';
import type { JsonRecord } from '../../../sandbox/objects.ts';
import { answering, type Listener, MERGE, PODS, podOf, useApiServer } from '../support.ts';

const CONFIGURATIONS = '/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations';

interface Review {
  request: JsonRecord & { uid: string; object: { metadata: { labels?: Record<string, string>; uid?: string } } | null };
}
type Answer = (review: Review) => unknown;

const authority = createCertificateAuthority('webhook-ca');
const patch = (operations: object[]) => ({
  patch: Buffer.from(JSON.stringify(operations)).toString('base64'),
  patchType: 'JSONPatch',
});
const review = (uid: string, response: object) => ({
  apiVersion: 'admission.k8s.io/v1',
  kind: 'AdmissionReview',
  response: { uid, ...response },
});
const allow: Answer = ({ request }) => review(request.uid, { allowed: true });

/** A server, and a webhook whose answers each test sets. */
function useWebhook() {
  const heard: Review[] = [];
  let answer: Answer = allow;
  let listener: Listener;
  const suite = useApiServer({ resolveService: () => ({ host: '127.0.0.1', port: listener.port }) });
  before(async () => {
    const call = ({ body }: { body: unknown }) => {
      heard.push(body as Review);
      return answer(body as Review);
    };
    listener = await answering(call, authority.issue(['hook.system.svc', '127.0.0.1']));
  });
  after(() => listener.close());
  const webhook = (name: string, extra: JsonRecord = {}): JsonRecord => ({
    name: `${name}.example.dev`,
    clientConfig: {
      service: { namespace: 'system', name: 'hook', path: `/${name}` },
      caBundle: Buffer.from(authority.cert).toString('base64'),
    },
    rules: [{ operations: ['CREATE'], apiGroups: [''], apiVersions: ['v1'], resources: ['pods'] }],
    sideEffects: 'None',
    admissionReviewVersions: ['v1'],
    timeoutSeconds: 1,
    ...extra,
  });
  return {
    call: suite.call,
    heard,
    webhook,
    /** Configures webhooks, and what they answer. */
    async configure(webhooks: JsonRecord[], next: Answer = allow) {
      heard.length = 0;
      answer = next;
      await suite.call('DELETE', `${CONFIGURATIONS}/hooks`);
      return suite.call('POST', CONFIGURATIONS, { metadata: { name: 'hooks' }, webhooks });
    },
  };
}

let count = 0;
const pod = (labels?: Record<string, string>) => {
  const made = podOf('');
  return { ...made, metadata: { generateName: `p${count++}-`, namespace: 'default', ...(labels && { labels }) } };
};

describe('sandbox admission: requests to a webhook', () => {
  const hooks = useWebhook();
  it('are an AdmissionReview of a pod without name or uid, with the user', async () => {
    await hooks.configure([hooks.webhook('a')]);
    await hooks.call('POST', `${PODS}?fieldManager=me`, pod());
    const { request } = hooks.heard[0]!;
    assert.match(request.uid, /^[0-9a-f-]{36}$/);
    assert.deepEqual(request.kind, { group: '', version: 'v1', kind: 'Pod' });
    assert.deepEqual(request.resource, { group: '', version: 'v1', resource: 'pods' });
    const { operation, namespace, name, oldObject, dryRun } = request;
    assert.deepEqual([operation, namespace, name, oldObject, dryRun], ['CREATE', 'default', undefined, null, false]);
    const extra = { 'example.dev/x': ['y'] };
    assert.deepEqual(request.userInfo, { username: 'tester', groups: ['system:authenticated'], extra });
    assert.deepEqual(request.options, { apiVersion: 'meta.k8s.io/v1', kind: 'CreateOptions', fieldManager: 'me' });
    assert.equal(request.object?.metadata.uid, undefined);
  });

  const rules = (operations: string[], resources: string[]) => [
    { operations, apiGroups: ['*'], apiVersions: ['*'], resources },
  ];
  const notDefault = [{ key: 'kubernetes.io/metadata.name', operator: 'NotIn', values: ['default'] }];
  const matches: [string, JsonRecord, boolean][] = [
    ['another operation', { rules: rules(['UPDATE'], ['pods']) }, false],
    ['every subresource', { rules: rules(['*'], ['*/*']) }, true],
    ['only a subresource', { rules: rules(['*'], ['pods/status']) }, false],
    ['a missing label', { objectSelector: { matchLabels: { a: 'c' } } }, false],
    ['other namespaces', { namespaceSelector: { matchExpressions: notDefault } }, false],
  ];
  for (const [what, extra, called] of matches) {
    it(`depend on rules and selectors: ${what}: ${called ? 'called' : 'not called'}`, async () => {
      await hooks.configure([hooks.webhook('m', extra)]);
      await hooks.call('POST', PODS, pod({ a: 'b' }));
      assert.equal(hooks.heard.length, called ? 1 : 0);
    });
  }
});

describe('sandbox admission: answers of a webhook', () => {
  const hooks = useWebhook();

  const bad: [string, Answer, RegExp][] = [
    ['another uid', () => review('other', { allowed: true }), /expected response.uid=/],
    ['HTTP 500', () => 500, /HTTP 500/],
    ['no answer in time', () => new Promise(() => undefined), /deadline/],
  ];
  for (const [what, answer, message] of bad) {
    it(`${what}: 500 under Fail, ignored under Ignore`, async () => {
      await hooks.configure([hooks.webhook('a')], answer);
      const { status, body } = await hooks.call('POST', PODS, pod());
      assert.deepEqual([status, body.reason], [500, 'InternalError']);
      assert.match(String(body.message), /failed calling webhook "a.example.dev"/);
      assert.match(String(body.message), message);
      await hooks.configure([hooks.webhook('a', { failurePolicy: 'Ignore' })], answer);
      assert.equal((await hooks.call('POST', PODS, pod())).status, 201);
    });
  }
  it('a patch that does not apply: 500 even under Ignore', async () => {
    const fields = patch([{ op: 'replace', path: '/spec/nowhere/x', value: 1 }]);
    const patching: Answer = ({ request }) => review(request.uid, { allowed: true, ...fields });
    await hooks.configure([hooks.webhook('a', { failurePolicy: 'Ignore' })], patching);
    assert.equal((await hooks.call('POST', PODS, pod())).status, 500);
  });
  it('a denial: its code and message, and warnings as headers', async () => {
    const response = { allowed: false, status: { message: 'no', code: 422 }, warnings: ['say "hi"', 'two'] };
    await hooks.configure([hooks.webhook('a')], ({ request }) => review(request.uid, response));
    const reply = await hooks.call('POST', PODS, pod());
    const message = 'admission webhook "a.example.dev" denied the request: no';
    assert.deepEqual([reply.status, reply.body.message], [422, message]);
    assert.equal(reply.headers.warning, '299 - "say \\"hi\\"", 299 - "two"');
  });
});

describe('sandbox admission: match conditions', () => {
  const hooks = useWebhook();
  const require = `authorizer.serviceAccount('default', 'hook').group('g').resource('r').namespace('default').check('v').allowed()`;
  const broken = 'object.spec.nodeName == "x"';
  for (const [what, expressions, called, status = 201, policy = {}] of [
    ['all true', ['true', 'has(object.spec.containers)'], true],
    ['one false', ['true', 'has(object.metadata.labels)'], false],
    ['an amount', [`quantity('2').compareTo(quantity('2000m')) == 0`], true],
    ['a failing one, Fail', [broken], false, 403],
    ['a failing one, Ignore', [broken], false, 201, { failurePolicy: 'Ignore' }],
  ] as const) {
    it(`${what}: ${called ? 'called' : 'not called'}, ${status}`, async () => {
      const matchConditions = expressions.map((expression, index) => ({ name: `c${index}`, expression }));
      const made = await hooks.configure([hooks.webhook('m', { matchConditions, ...policy })]);
      assert.equal(made.status, 201);
      assert.equal((await hooks.call('POST', PODS, pod())).status, status);
      assert.equal(hooks.heard.length, called ? 1 : 0);
    });
  }

  it('the authorizer: false until a RoleBinding has the account as its subject', async () => {
    const rbac = '/apis/rbac.authorization.k8s.io/v1/namespaces/default';
    const rules = [{ apiGroups: ['g'], resources: ['r'], verbs: ['v'] }];
    const roleRef = { apiGroup: 'rbac.authorization.k8s.io', kind: 'Role', name: 'role' };
    await hooks.call('POST', `${rbac}/roles`, { metadata: { name: 'role' }, rules });
    await hooks.call('POST', `${rbac}/rolebindings`, { metadata: { name: 'binding' }, roleRef });
    await hooks.configure([hooks.webhook('m', { matchConditions: [{ name: 'required', expression: require }] })]);
    await hooks.call('POST', PODS, pod());
    assert.equal(hooks.heard.length, 0);
    const subjects = [{ kind: 'ServiceAccount', name: 'hook', namespace: 'default' }];
    await hooks.call('PATCH', `${rbac}/rolebindings/binding`, { subjects }, { type: MERGE });
    await hooks.call('POST', PODS, pod());
    assert.equal(hooks.heard.length, 1);
  });
});

describe('sandbox admission: several webhooks, TLS, configurations', () => {
  const hooks = useWebhook();
  afterEach(() => hooks.call('DELETE', `${CONFIGURATIONS}/hooks`));
  const labelling: Answer = ({ request }) => {
    const labels = request.object?.metadata.labels ?? {};
    const value = String(Number(labels.n ?? 0) + 1);
    return review(request.uid, {
      allowed: true,
      ...patch([{ op: 'add', path: '/metadata/labels', value: { ...labels, n: value } }]),
    });
  };

  it('each webhook sees the changes of earlier ones; IfNeeded is called again after a later change', async () => {
    await hooks.configure([hooks.webhook('a', { reinvocationPolicy: 'IfNeeded' }), hooks.webhook('b')], labelling);
    const { body } = await hooks.call('POST', PODS, pod());
    assert.deepEqual(body.metadata.labels, { n: '3' });
    assert.equal(hooks.heard.length, 3);
  });
  it('TLS with another CA causes no call', async () => {
    const caBundle = Buffer.from(createCertificateAuthority('other').cert).toString('base64');
    const clientConfig = { service: { namespace: 'system', name: 'hook' }, caBundle };
    await hooks.configure([hooks.webhook('t', { clientConfig })]);
    assert.equal((await hooks.call('POST', PODS, pod())).status, 500);
    assert.equal(hooks.heard.length, 0);
  });
  const matchConditions = [{ name: 'x', expression: 'has(' }];
  const wrong: [string, JsonRecord, RegExp][] = [
    ['missing sideEffects', { sideEffects: null }, /sideEffects/],
    ['a match condition that is not CEL', { matchConditions }, /matchConditions\[0\].expression: .*compilation failed/],
  ];
  for (const [what, extra, field] of wrong) {
    it(`a configuration with ${what}: 422`, async () => {
      const { status, body } = await hooks.configure([hooks.webhook('a', extra)]);
      assert.equal(status, 422);
      assert.match(String(body.message), field);
    });
  }
});
