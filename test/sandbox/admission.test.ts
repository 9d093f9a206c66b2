import assert from 'node:assert/strict';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { createCertificateAuthority } from '../../sandbox/certificates.ts';
import type { JsonRecord } from '../../sandbox/objects.ts';
import { type Listener, listen, podOf, useApiServer } from './support.ts';

const PODS = '/api/v1/namespaces/default/pods';
const CONFIGURATIONS = '/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations';
const VALIDATING = '/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations';

interface Review {
  request: JsonRecord & { uid: string; object: { metadata: { labels?: Record<string, string>; uid?: string } } | null };
}
type Answer = (review: Review) => unknown;

const authority = createCertificateAuthority('webhook-ca');
const patch = (operations: object[]) => ({
  patch: Buffer.from(JSON.stringify(operations)).toString('base64'),
  patchType: 'JSONPatch',
});
const addLabel = (key: string, value = '1') =>
  patch([{ op: 'add', path: '/metadata/labels', value: { [key]: value } }]);
const review = (uid: string, response: object, extra: object = {}) => ({
  apiVersion: 'admission.k8s.io/v1',
  kind: 'AdmissionReview',
  response: { uid, ...response },
  ...extra,
});
const allow: Answer = ({ request }) => review(request.uid, { allowed: true });

/** A server, and a webhook whose answers each test sets. */
function useWebhook() {
  const heard: Review[] = [];
  let answer: Answer = allow;
  let listener: Listener;
  const suite = useApiServer({ resolveService: () => ({ host: '127.0.0.1', port: listener.port }) });
  const handle = async (request: IncomingMessage, response: ServerResponse) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const decoded = JSON.parse(Buffer.concat(chunks).toString()) as Review;
    heard.push(decoded);
    const reply = await answer(decoded);
    if (typeof reply === 'number') response.statusCode = reply;
    response.end(typeof reply === 'string' ? reply : JSON.stringify(reply));
  };
  before(async () => {
    const names = ['hook.system.svc', '127.0.0.1'];
    listener = await listen((request, response) => void handle(request, response), { authority, names });
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
  const configure = async (webhooks: JsonRecord[], name = 'hooks', path = CONFIGURATIONS) => {
    await suite.call('DELETE', `${path}/${name}`);
    return suite.call('POST', path, { metadata: { name }, webhooks });
  };
  return {
    call: suite.call,
    get port() {
      return listener.port;
    },
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
  it('have the dry-run flag', async () => {
    hooks.say(allow);
    await hooks.call('POST', `${PODS}?dryRun=All`, pod());
    assert.equal(hooks.heard[0]?.request.dryRun, true);
  });

  const rules = (operations: string[], resources: string[], extra = {}) => [
    { operations, apiGroups: ['*'], apiVersions: ['*'], resources, ...extra },
  ];
  const matches: [string, JsonRecord, boolean][] = [
    ['another operation', { rules: rules(['UPDATE'], ['pods']) }, false],
    ['another resource', { rules: rules(['CREATE'], ['nodes']) }, false],
    ['every resource', { rules: rules(['*'], ['*']) }, true],
    ['every subresource', { rules: rules(['*'], ['*/*']) }, true],
    ['only a subresource', { rules: rules(['*'], ['pods/status']) }, false],
    ['cluster scope', { rules: rules(['*'], ['*'], { scope: 'Cluster' }) }, false],
    ['an existing label', { objectSelector: { matchLabels: { a: 'b' } } }, true],
    ['a missing label', { objectSelector: { matchLabels: { a: 'c' } } }, false],
    ['an expression', { objectSelector: { matchExpressions: [{ key: 'z', operator: 'DoesNotExist' }] } }, true],
    [
      'the namespace by name',
      { namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': 'default' } } },
      true,
    ],
    [
      'other namespaces',
      {
        namespaceSelector: {
          matchExpressions: [{ key: 'kubernetes.io/metadata.name', operator: 'NotIn', values: ['default'] }],
        },
      },
      false,
    ],
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
  it('may have a patch, which is applied', async () => {
    await hooks.configure([hooks.webhook('a')]);
    hooks.say(({ request }) => review(request.uid, { allowed: true, ...addLabel('x') }));
    const { status, body } = await hooks.call('POST', PODS, pod());
    assert.deepEqual([status, body.metadata.labels], [201, { x: '1' }]);
  });
  it('may not have a patch that makes the object invalid', async () => {
    hooks.say(({ request }) =>
      review(request.uid, { allowed: true, ...patch([{ op: 'remove', path: '/spec/containers/0' }]) }),
    );
    assert.equal((await hooks.call('POST', PODS, pod())).status, 422);
  });
  it('may have warnings, which become headers', async () => {
    hooks.say(({ request }) => review(request.uid, { allowed: true, warnings: ['say "hi"', 'two'] }));
    const { headers } = await hooks.call('POST', PODS, pod());
    assert.equal(headers.warning, '299 - "say \\"hi\\"", 299 - "two"');
  });
  const bad: [string, Answer, RegExp][] = [
    ['another uid', () => review('other', { allowed: true }), /expected response.uid=/],
    [
      'no response',
      () => ({ apiVersion: 'admission.k8s.io/v1', kind: 'AdmissionReview' }),
      /webhook response was absent/,
    ],
    [
      'v1beta1',
      ({ request }) => review(request.uid, { allowed: true }, { apiVersion: 'admission.k8s.io/v1beta1' }),
      /expected webhook response of admission.k8s.io\/v1/,
    ],
    [
      'a patch without its type',
      ({ request }) => review(request.uid, { allowed: true, patch: 'W10=' }),
      /response.patch but not response.patchType/,
    ],
    [
      'a type without its patch',
      ({ request }) => review(request.uid, { allowed: true, patchType: 'JSONPatch' }),
      /response.patchType but not response.patch/,
    ],
    [
      'another patch type',
      ({ request }) => review(request.uid, { allowed: true, patch: 'W10=', patchType: 'Merge' }),
      /invalid response.patchType/,
    ],
    ['invalid JSON', () => 'oops', /no JSON/],
    ['HTTP 500', () => 500, /HTTP 500/],
    ['no answer in time', () => new Promise((resolve) => setTimeout(resolve, 1_300, 'late').unref()), /deadline/],
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
  for (const [what, fields] of [
    ['that does not apply', patch([{ op: 'replace', path: '/spec/nowhere/x', value: 1 }])],
    ['that is not JSON', { patch: Buffer.from('{').toString('base64'), patchType: 'JSONPatch' }],
  ] as const) {
    it(`a patch ${what}: 500 even under Ignore`, async () => {
      await hooks.configure([hooks.webhook('a', { failurePolicy: 'Ignore' })]);
      hooks.say(({ request }) => review(request.uid, { allowed: true, ...fields }));
      assert.equal((await hooks.call('POST', PODS, pod())).status, 500);
    });
  }
  for (const [what, status, code, message] of [
    ['with a message', { message: 'no room' }, 400, 'admission webhook "a.example.dev" denied the request: no room'],
    ['with a code', { message: 'no', code: 422 }, 422, 'admission webhook "a.example.dev" denied the request: no'],
    ['without a message', undefined, 400, 'admission webhook "a.example.dev" denied the request without explanation'],
  ] as const) {
    it(`a denial ${what}: ${code}`, async () => {
      await hooks.configure([hooks.webhook('a')]);
      hooks.say(({ request }) =>
        review(request.uid, { allowed: false, ...(status && { status }), warnings: ['still reported'] }),
      );
      const reply = await hooks.call('POST', PODS, pod());
      assert.deepEqual([reply.status, reply.body.message], [code, message]);
      assert.equal(reply.headers.warning, '299 - "still reported"');
    });
  }
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
    { what: 'the operation', expressions: [`request.operation == 'CREATE' && oldObject == null`], called: true },
    { what: 'an amount', expressions: [`quantity('2').compareTo(quantity('2000m')) == 0`], called: true },
    {
      what: 'a member of a list',
      expressions: [`object.spec.containers.exists(c, c.name in ['a', 'main'])`],
      called: true,
    },
    { what: 'a failing one, Fail', expressions: [broken], status: 403, called: false },
    { what: 'a failing one, Ignore', expressions: [broken], failurePolicy: 'Ignore', called: false },
    { what: 'a failing one and a false one', expressions: [broken, 'false'], called: false },
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
  it('configurations run in the order of their names', async () => {
    await hooks.configure([hooks.webhook('b', { objectSelector: { matchLabels: { n: '1' } } })], 'z-last');
    await hooks.configure([hooks.webhook('a')]);
    hooks.say(labelling);
    assert.deepEqual((await hooks.call('POST', PODS, pod())).body.metadata.labels, { n: '2' });
    await hooks.call('DELETE', `${CONFIGURATIONS}/z-last`);
  });
  it('a validating webhook may deny but not patch', async () => {
    await hooks.configure([hooks.webhook('v')], 'judges', VALIDATING);
    hooks.say(({ request }) => review(request.uid, { allowed: false, status: { message: 'never' } }));
    assert.match(String((await hooks.call('POST', PODS, pod())).body.message), /denied the request: never/);
    hooks.say(({ request }) => review(request.uid, { allowed: true, ...addLabel('x') }));
    assert.equal((await hooks.call('POST', PODS, pod())).status, 500);
    await hooks.call('DELETE', `${VALIDATING}/judges`);
  });
  it('a URL works like a Service', async () => {
    const caBundle = Buffer.from(authority.cert).toString('base64');
    await hooks.configure([
      hooks.webhook('u', { clientConfig: { url: `https://127.0.0.1:${hooks.port}/u`, caBundle } }),
    ]);
    hooks.say(allow);
    assert.equal((await hooks.call('POST', PODS, pod())).status, 201);
    assert.equal(hooks.heard.length, 1);
  });
  const service = { namespace: 'system', name: 'hook' };
  const other = Buffer.from(createCertificateAuthority('other').cert).toString('base64');
  for (const [what, clientConfig] of [
    ['another CA', { service, caBundle: other }],
    ['a missing CA bundle', { service }],
    [
      'a name that is not in the certificate',
      { service: { ...service, name: 'else' }, caBundle: Buffer.from(authority.cert).toString('base64') },
    ],
  ] as const) {
    it(`TLS with ${what} causes no call`, async () => {
      await hooks.configure([hooks.webhook('t', { clientConfig })]);
      hooks.say(allow);
      assert.equal((await hooks.call('POST', PODS, pod())).status, 500);
      assert.equal(hooks.heard.length, 0);
    });
  }
  for (const [what, extra, field] of [
    ['a name with one part', { name: 'short' }, /webhooks\[0\].name/],
    ['missing sideEffects', { sideEffects: undefined as unknown as string }, /sideEffects/],
    ['missing v1', { admissionReviewVersions: ['v1beta1'] }, /must include at least one of v1/],
    ['31 seconds', { timeoutSeconds: 31 }, /timeoutSeconds/],
    ['url and service', { clientConfig: { url: 'https://x', service } }, /exactly one of url or service/],
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
