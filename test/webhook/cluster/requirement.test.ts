import assert from 'node:assert/strict';
import { type KubeClient, KubeError } from '../../../kube/client.ts';
import { createRequirement, createRequirementReview } from '../../../webhook/cluster/requirement.ts';
import type { AdmissionRequest } from '../../../webhook/review/admission-review.ts';
import { recordingLogger } from '../../support/logger.ts';
import { turns, useVirtualClock } from '../../support/virtual-clock.ts';

const BINDING =
  '/apis/rbac.authorization.k8s.io/v1/namespaces/plumbline-system/rolebindings/plumbline-webhook-required';
const ACCOUNT = { kind: 'ServiceAccount', name: 'plumbline-webhook', namespace: 'plumbline-system' };
const ADMISSION = '/apis/admissionregistration.k8s.io/v1';
const CONFIGURATIONS = [
  'mutatingwebhookconfigurations/plumbline-webhook',
  'mutatingwebhookconfigurations/plumbline-opt-in',
  'validatingwebhookconfigurations/plumbline-webhook',
];

const entry = (caBundle?: string) => ({ name: 'a.plumbline.dev', clientConfig: { ...(caBundle && { caBundle }) } });
/** A complete installation before the first call of the webhook. */
const installed = (): Record<string, unknown> => ({
  [BINDING]: { metadata: {}, roleRef: {} },
  ...Object.fromEntries(CONFIGURATIONS.map((path) => [`${ADMISSION}/${path}`, { webhooks: [entry('Q0E=')] }])),
});

function requirement(objects: Record<string, unknown>, reason?: string) {
  const { log, lines } = recordingLogger();
  const state = { notReady: reason, refusal: undefined as KubeError | undefined };
  const written: unknown[] = [];
  const outcomes: boolean[] = [];
  let reads = 0;
  const client = {
    async get(path: string) {
      if (path === BINDING) reads++;
      if (objects[path] === undefined) throw new KubeError(404, 'NotFound', `${path} not found`);
      return objects[path];
    },
    async patch(path: string, _type: string, body: object) {
      if (state.refusal) throw state.refusal;
      assert.equal(path, BINDING);
      written.push(body);
      objects[path] = { ...(objects[path] as object), ...body };
    },
  } as unknown as KubeClient;
  const onChange = (isRequired: boolean) => void outcomes.push(isRequired);
  const requirement = createRequirement({ client, notReady: () => state.notReady, onChange, log });
  return { ...requirement, state, written, outcomes, lines, reads: () => reads };
}

describe('the requirement that the API server calls the webhook', () => {
  it('adds its account to the binding, once', async () => {
    const { written, attempt } = requirement(installed());
    assert.equal(await attempt(), undefined);
    assert.equal(await attempt(), undefined);
    assert.deepEqual(written, [{ subjects: [ACCOUNT] }]);
  });

  it('recognises its account among others', async () => {
    const others = [
      { ...ACCOUNT, kind: 'User' },
      { ...ACCOUNT, name: 'other' },
      { ...ACCOUNT, namespace: 'other' },
      { kind: ACCOUNT.kind, name: ACCOUNT.name },
    ];
    const { written, attempt } = requirement({ ...installed(), [BINDING]: { subjects: others } });
    await attempt();
    assert.deepEqual(written, [{ subjects: [...others, ACCOUNT] }]);
    const present = requirement({ [BINDING]: { subjects: [...others, ACCOUNT] } }, 'not yet');
    assert.equal(await present.attempt(), undefined, 'nothing else is required');
  });

  const [, optIn = ''] = CONFIGURATIONS;
  const optInOf = (...webhooks: object[]) => ({ [`${ADMISSION}/${optIn}`]: { webhooks } });
  const waits: [string, Record<string, unknown>, RegExp, string?][] = [
    ['the webhook is not ready', {}, /not synced/, 'not synced yet: nodes'],
    ['the binding was deleted', { [BINDING]: undefined }, /there is no RoleBinding plumbline-webhook-required/],
    ['a configuration is missing', { [`${ADMISSION}/${optIn}`]: undefined }, /mutating.*opt-in does not exist/],
    ['a webhook has no CA bundle', optInOf(entry('Q0E='), entry()), /a\.plumbline\.dev of .*opt-in has no CA bundle/],
    ['the configurations have different CA bundles', optInOf(entry('b3RoZXI=')), /different CA bundles/],
  ];
  for (const [when, objects, why, notReady] of waits)
    it(`waits while ${when}, and writes nothing`, async () => {
      const { written, attempt } = requirement({ ...installed(), ...objects }, notReady);
      assert.match((await attempt()) ?? '', why);
      assert.deepEqual(written, []);
    });

  it('returns the error of the API server if it could not reach the webhook', async () => {
    const failed = 'failed calling webhook "required.plumbline.dev": x509: certificate signed by unknown authority';
    const { attempt, state } = requirement(installed());
    state.refusal = new KubeError(500, 'InternalError', failed);
    assert.equal(await attempt(), failed);
  });

  it('admits the write only when the webhook is ready', async () => {
    const request = {} as AdmissionRequest;
    assert.deepEqual(await createRequirementReview(() => undefined)(request), { allowed: true });
    const answer = await createRequirementReview(() => 'not synced yet: nodes')(request);
    assert.deepEqual([answer.allowed, 'code' in answer && answer.code], [false, 503]);
  });
});

describe('the checks of whether the API server calls the webhook', () => {
  const { pass } = useVirtualClock();

  it('run every 2 s until it does, then every 30 s, and log each change once', async () => {
    const objects = installed();
    const { run, state, outcomes, lines, reads } = requirement(objects, 'not yet');
    const stopped = new AbortController();
    const ended = run(stopped.signal);
    await turns();
    await pass(1.9);
    assert.deepEqual([reads(), outcomes], [1, [false]]);
    await pass(0.1);
    for (let i = 0; i < 3; i++) await pass(2);
    assert.equal(reads(), 5);
    state.notReady = undefined;
    await pass(2);
    await pass(29);
    assert.deepEqual([reads(), outcomes.slice(-2)], [6, [false, true]]);
    await pass(1);
    delete objects[BINDING];
    await pass(30);
    for (let i = 0; i < 4; i++) await pass(2);
    assert.deepEqual([reads(), outcomes.at(-1)], [12, false]);
    const logged = lines.map(({ level, reason, lastedSeconds }) => `${level} ${typeof reason} ${typeof lastedSeconds}`);
    assert.deepEqual(logged, ['40 string undefined', '30 undefined number', '40 string undefined']);
    stopped.abort();
    await ended;
  });
});
