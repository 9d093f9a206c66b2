import assert from 'node:assert/strict';
import { type KubeClient, KubeError } from '../../../kube/client.ts';
import { createRequirement, createRequirementReview } from '../../../webhook/cluster/requirement.ts';
import type { AdmissionRequest } from '../../../webhook/review/admission-review.ts';
import { silent } from '../../support/logger.ts';

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

function requirement(objects: Record<string, unknown>, notReady?: string, refusal?: KubeError) {
  const written: unknown[] = [];
  const client = {
    async get(path: string) {
      if (objects[path] === undefined) throw new KubeError(404, 'NotFound', `${path} not found`);
      return objects[path];
    },
    async patch(path: string, _type: string, body: object) {
      if (refusal) throw refusal;
      assert.equal(path, BINDING);
      written.push(body);
      objects[path] = { ...(objects[path] as object), ...body };
    },
  } as unknown as KubeClient;
  const options = { client, notReady: () => notReady, onChange: () => undefined, log: silent };
  return { written, ...createRequirement(options) };
}

describe('the requirement that the API server calls the webhook', () => {
  it('adds its account to the binding, once', async () => {
    const { written, attempt } = requirement(installed());
    assert.equal(await attempt(), undefined);
    assert.equal(await attempt(), undefined);
    assert.deepEqual(written, [{ subjects: [ACCOUNT] }]);
  });

  const [, optIn = ''] = CONFIGURATIONS;
  const waits: [string, Record<string, unknown>, string | undefined, RegExp][] = [
    ['the webhook is not ready', {}, 'not synced yet: nodes', /not synced/],
    [
      'the binding was deleted',
      { [BINDING]: undefined },
      undefined,
      /there is no RoleBinding plumbline-webhook-required/,
    ],
    [
      'a configuration is missing',
      { [`${ADMISSION}/${optIn}`]: undefined },
      undefined,
      /mutating.*opt-in does not exist/,
    ],
    [
      'a webhook has no CA bundle',
      { [`${ADMISSION}/${optIn}`]: { webhooks: [entry('Q0E='), entry()] } },
      undefined,
      /a\.plumbline\.dev of .*opt-in has no CA bundle/,
    ],
    [
      'the configurations have different CA bundles',
      { [`${ADMISSION}/${optIn}`]: { webhooks: [entry('b3RoZXI=')] } },
      undefined,
      /different CA bundles/,
    ],
  ];
  for (const [when, objects, notReady, why] of waits) {
    it(`waits while ${when}, and writes nothing`, async () => {
      const { written, attempt } = requirement({ ...installed(), ...objects }, notReady);
      assert.match((await attempt()) ?? '', why);
      assert.deepEqual(written, []);
    });
  }

  it('returns the error of the API server if it could not reach the webhook', async () => {
    const failed = 'failed calling webhook "required.plumbline.dev": x509: certificate signed by unknown authority';
    const { attempt } = requirement(installed(), undefined, new KubeError(500, 'InternalError', failed));
    assert.equal(await attempt(), failed);
  });

  it('admits the write only when the webhook is ready', async () => {
    const request = {} as AdmissionRequest;
    assert.deepEqual(await createRequirementReview(() => undefined)(request), { allowed: true });
    const answer = await createRequirementReview(() => 'not synced yet: nodes')(request);
    assert.deepEqual([answer.allowed, 'code' in answer && answer.code], [false, 503]);
  });
});
