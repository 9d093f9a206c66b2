import type { IncomingMessage } from 'node:http';
import { Agent, type RequestOptions, request } from 'node:https';
import * as z from 'zod';
import { ACCEPT, readText } from '../../kube/calls.ts';
import type { JsonRecord, JsonValue, KubeObject } from '../objects.ts';
import type { StatusCause } from './errors.ts';
import { compileCondition } from './match-conditions.ts';

export interface Endpoint {
  readonly host: string;
  readonly port: number;
}

export type ServiceResolver = (namespace: string, name: string, port: number) => Endpoint | undefined;

export type WebhookClient = ReturnType<typeof createWebhookClient>;

const MAX_ANSWER_BYTES = 8 * 1024 * 1024;

/** Calls admission webhooks over HTTPS, and trusts only each webhook's own caBundle. */
export function createWebhookClient(resolve: ServiceResolver) {
  const agent = new Agent({ keepAlive: true });
  return {
    /** @throws Error if verified TLS fails, it exceeds its timeoutSeconds, or the response is not 2xx or not JSON */
    async call(webhook: Webhook, review: JsonValue) {
      const { service, caBundle } = webhook.clientConfig;
      const { namespace, name, path, port: servicePort } = service;
      const endpoint = resolve(namespace, name, servicePort);
      if (!endpoint) throw new Error(`no endpoints available for service "${namespace}/${name}"`);
      const servername = `${name}.${namespace}.svc`;
      const { status, text } = await post(JSON.stringify(review), {
        agent,
        ...endpoint,
        servername,
        path: `${path}?timeout=${webhook.timeoutSeconds}s`,
        headers: { host: servername, 'content-type': 'application/json', accept: ACCEPT },
        // Without a bundle the real server uses the system's CAs; neither of them skips verification.
        ...(caBundle !== undefined && { ca: Buffer.from(caBundle, 'base64') }),
        signal: AbortSignal.timeout(webhook.timeoutSeconds * 1000),
      });
      const excerpt = JSON.stringify(text.slice(0, 200));
      if (status < 200 || status > 299) {
        throw new Error(`an error on the server (${excerpt}) has prevented the request (HTTP ${status})`);
      }
      try {
        return JSON.parse(text) as JsonValue;
      } catch (error) {
        throw new Error(`the answer is no JSON: ${excerpt}`, { cause: error });
      }
    },
    close: () => agent.destroy(),
  };
}

async function post(body: string, options: RequestOptions): Promise<{ status: number; text: string }> {
  try {
    const response = await new Promise<IncomingMessage>((resolve, reject) => {
      const headers = { ...options.headers, 'content-length': Buffer.byteLength(body) };
      request({ ...options, method: 'POST', headers }, resolve)
        .on('error', reject)
        .end(body);
    });
    return { status: response.statusCode ?? 0, text: await readText(response, MAX_ANSWER_BYTES) };
  } catch (error) {
    if ((error as Error).name !== 'AbortError') throw error;
    throw new Error('context deadline exceeded', { cause: error });
  }
}

const selector = z.record(z.string(), z.unknown()).transform((value) => value as JsonRecord);

const rule = z.object({
  operations: z.array(z.enum(['CREATE', 'UPDATE', 'DELETE', 'CONNECT', '*'])).min(1),
  apiGroups: z.array(z.string()).min(1),
  apiVersions: z.array(z.string()).min(1),
  resources: z.array(z.string()).min(1),
  scope: z.enum(['Cluster', 'Namespaced', '*']).default('*'),
});

/** The sandbox calls Services only, no URLs. */
const clientConfig = z.object({
  service: z.object({
    namespace: z.string(),
    name: z.string(),
    path: z.string().startsWith('/', 'must start with a slash').default('/'),
    port: z.number().int().min(1).max(65_535).default(443),
  }),
  caBundle: z.base64().optional(),
});

const matchCondition = z.object({
  name: z.string().min(1),
  expression: z.string().superRefine((expression, { addIssue }) => {
    try {
      compileCondition(expression);
    } catch (error) {
      addIssue({ code: 'custom', message: `compilation failed: ${(error as Error).message}` });
    }
  }),
});

const webhook = z.object({
  name: z.string().regex(/^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?){2,}$/, {
    message: 'should be a domain with at least three segments separated by dots',
  }),
  clientConfig,
  rules: z.array(rule).default([]),
  failurePolicy: z.enum(['Fail', 'Ignore']).default('Fail'),
  namespaceSelector: selector.optional(),
  objectSelector: selector.optional(),
  sideEffects: z.enum(['None', 'NoneOnDryRun']),
  timeoutSeconds: z.number().int().min(1).max(30).default(10),
  reinvocationPolicy: z.enum(['Never', 'IfNeeded']).default('Never'),
  admissionReviewVersions: z.array(z.string()).refine((versions) => versions.includes('v1'), {
    message: 'must include at least one of v1',
  }),
  matchConditions: z.array(matchCondition).max(64).default([]),
});

export type Webhook = z.infer<typeof webhook>;

const configuration = z.object({ webhooks: z.array(webhook).default([]) });

export function webhookConfigurationCauses(object: KubeObject): StatusCause[] {
  const result = configuration.safeParse(object);
  return (result.error?.issues ?? []).map(({ path, message }) => ({
    reason: 'FieldValueInvalid',
    field: path.join('.').replace(/\.(\d+)/g, '[$1]'),
    message,
  }));
}

export function webhooksOf(object: KubeObject): Webhook[] {
  return configuration.parse(object).webhooks;
}
