import * as z from 'zod';
import type { JsonObject, KubeObject } from '../objects.ts';
import type { Cause } from './errors.ts';

const selector = z.record(z.string(), z.unknown()).transform((value) => value as JsonObject);

const rule = z.object({
  operations: z.array(z.enum(['CREATE', 'UPDATE', 'DELETE', 'CONNECT', '*'])).min(1),
  apiGroups: z.array(z.string()).min(1),
  apiVersions: z.array(z.string()).min(1),
  resources: z.array(z.string()).min(1),
  scope: z.enum(['Cluster', 'Namespaced', '*']).default('*'),
});

const clientConfig = z
  .object({
    url: z.string().startsWith('https://', 'must be an https URL').optional(),
    service: z
      .object({
        namespace: z.string(),
        name: z.string(),
        path: z.string().startsWith('/', 'must start with a slash').optional(),
        port: z.number().int().min(1).max(65_535).default(443),
      })
      .optional(),
    /** PEM, base64. */
    caBundle: z.base64().optional(),
  })
  .refine(({ url, service }) => (url === undefined) !== (service === undefined), {
    message: 'exactly one of url or service is required',
  });

/** One webhook with the API server's defaults. */
const webhook = z.object({
  name: z.string().regex(/^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?){2,}$/, {
    message: 'should be a domain with at least three segments separated by dots',
  }),
  clientConfig,
  rules: z.array(rule).default([]),
  failurePolicy: z.enum(['Fail', 'Ignore']).default('Fail'),
  matchPolicy: z.enum(['Exact', 'Equivalent']).default('Equivalent'),
  namespaceSelector: selector.optional(),
  objectSelector: selector.optional(),
  sideEffects: z.enum(['None', 'NoneOnDryRun']),
  timeoutSeconds: z.number().int().min(1).max(30).default(10),
  reinvocationPolicy: z.enum(['Never', 'IfNeeded']).default('Never'),
  admissionReviewVersions: z.array(z.string()).refine((versions) => versions.includes('v1'), {
    message: 'must include at least one of v1',
  }),
  matchConditions: z
    .array(z.unknown())
    .max(0, 'the sandbox evaluates no CEL: leave match conditions out here')
    .optional(),
});

export type Webhook = z.infer<typeof webhook>;

const configuration = z.object({ webhooks: z.array(webhook).default([]) });

/** Validation errors of a webhook configuration, by field. */
export function webhookConfigurationCauses(object: KubeObject): Cause[] {
  const result = configuration.safeParse(object);
  return (result.error?.issues ?? []).map(({ path, message }) => ({
    reason: 'FieldValueInvalid',
    field: path.join('.').replace(/\.(\d+)/g, '[$1]'),
    message,
  }));
}

/** The webhooks of a stored configuration, with defaults. */
export function webhooksOf(object: KubeObject): Webhook[] {
  return configuration.parse(object).webhooks;
}
