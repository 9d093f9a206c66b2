import assert from 'node:assert/strict';
import { createCertificateAuthority } from '../../../sandbox/certificates.ts';
import type { JsonRecord } from '../../../sandbox/objects.ts';
import { answering, type Listener, PODS, podOf, useApiServer } from '../support.ts';

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
    const names = ['hook.system.svc', '127.0.0.1'];
    const call = ({ body }: { body: unknown }) => {
      heard.push(body as Review);
      return answer(body as Review);
    };
    listener = await answering(call, { authority, names });
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
  const configure = async (webhooks: JsonRecord[]) => {
    await suite.call('DELETE', `${CONFIGURATIONS}/hooks`);
    return suite.call('POST', CONFIGURATIONS, { metadata: { name: 'hooks' }, webhooks });
  };
  return {
    call: suite.call,
    heard,
    webhook,
    configure,
    say(next: Answer) {
      heard.length = 0;
      answer = next;
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
    hooks.say(allow);
    await hooks.call('POST', `${PODS}?fieldManager=me`, pod());
    const { request } = hooks.heard[0]!;
    assert.match(request.uid, /^[0-9a-f-]{36}$/);
    assert.deepEqual(request.kind, { group: '', version: 'v1', kind: 'Pod' });
    assert.deepEqual(request.resource, { group: '', version: 'v1', resource: 'pods' });
    assert.deepEqual(
      [request.operation, request.namespace, request.name, request.oldObject, request.dryRun],
      ['CREATE', 'default', undefined, null, false],
    );
    assert.deepEqual(request.userInfo, {
      username: 'tester',
      groups: ['system:authenticated'],
      extra: { 'example.dev/x': ['y'] },
    });
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
      hooks.say(allow);
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
      await hooks.configure([hooks.webhook('a')]);
      hooks.say(answer);
      const { status, body } = await hooks.call('POST', PODS, pod());
      assert.deepEqual([status, body.reason], [500, 'InternalError']);
      assert.match(String(body.message), /failed calling webhook "a.example.dev"/);
      assert.match(String(body.message), message);
      await hooks.configure([hooks.webhook('a', { failurePolicy: 'Ignore' })]);
      assert.equal((await hooks.call('POST', PODS, pod())).status, 201);
    });
  }
  it('a patch that does not apply: 500 even under Ignore', async () => {
    await hooks.configure([hooks.webhook('a', { failurePolicy: 'Ignore' })]);
    const fields = patch([{ op: 'replace', path: '/spec/nowhere/x', value: 1 }]);
    hooks.say(({ request }) => review(request.uid, { allowed: true, ...fields }));
    assert.equal((await hooks.call('POST', PODS, pod())).status, 500);
  });
  it('a denial: its code and message, and warnings as headers', async () => {
    await hooks.configure([hooks.webhook('a')]);
    const status = { message: 'no', code: 422 };
    hooks.say(({ request }) => review(request.uid, { allowed: false, status, warnings: ['say "hi"', 'two'] }));
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
  interface Row {
    readonly what: string;
    readonly expressions: readonly string[];
    readonly failurePolicy?: 'Ignore';
    readonly status?: number;
    readonly called: boolean;
  }
  const rows: readonly Row[] = [
    { what: 'all true', expressions: ['true', 'has(object.spec.containers)'], called: true },
    { what: 'one false', expressions: ['true', 'has(object.metadata.labels)'], called: false },
    { what: 'an amount', expressions: [`quantity('2').compareTo(quantity('2000m')) == 0`], called: true },
    { what: 'a failing one, Fail', expressions: [broken], status: 403, called: false },
    { what: 'a failing one, Ignore', expressions: [broken], failurePolicy: 'Ignore', called: false },
  ];
  for (const { what, expressions, status = 201, called, ...policy } of rows) {
    it(`${what}: ${called ? 'called' : 'not called'}, ${status}`, async () => {
      const matchConditions = expressions.map((expression, index) => ({ name: `c${index}`, expression }));
      const made = await hooks.configure([hooks.webhook('m', { matchConditions, ...policy })]);
      assert.equal(made.status, 201);
      hooks.say(allow);
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
    hooks.say(allow);
    await hooks.call('POST', PODS, pod());
    assert.equal(hooks.heard.length, 0);
    const subjects = [{ kind: 'ServiceAccount', name: 'hook', namespace: 'default' }];
    const type = 'application/merge-patch+json';
    await hooks.call('PATCH', `${rbac}/rolebindings/binding`, { subjects }, { type });
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
    await hooks.configure([hooks.webhook('a', { reinvocationPolicy: 'IfNeeded' }), hooks.webhook('b')]);
    hooks.say(labelling);
    const { body } = await hooks.call('POST', PODS, pod());
    assert.deepEqual(body.metadata.labels, { n: '3' });
    assert.equal(hooks.heard.length, 3);
  });
  it('TLS with another CA causes no call', async () => {
    const caBundle = Buffer.from(createCertificateAuthority('other').cert).toString('base64');
    const clientConfig = { service: { namespace: 'system', name: 'hook' }, caBundle };
    await hooks.configure([hooks.webhook('t', { clientConfig })]);
    hooks.say(allow);
    assert.equal((await hooks.call('POST', PODS, pod())).status, 500);
    assert.equal(hooks.heard.length, 0);
  });
  for (const [what, extra, field] of [
    ['missing sideEffects', { sideEffects: null }, /sideEffects/],
    [
      'a match condition that is not CEL',
      { matchConditions: [{ name: 'x', expression: 'has(' }] },
      /matchConditions\[0\].expression: .*compilation failed/,
    ],
  ] as const) {
    it(`a configuration with ${what}: 422`, async () => {
      const { status, body } = await hooks.configure([hooks.webhook('a', extra as JsonRecord)]);
      assert.equal(status, 422);
      assert.match(String(body.message), field);
    });
  }
});
