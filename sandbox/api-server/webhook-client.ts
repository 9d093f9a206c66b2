import type { IncomingMessage } from 'node:http';
import { Agent, type RequestOptions, request } from 'node:https';
import { Environment, type ParseResult } from '@marcbachmann/cel-js';
import * as z from 'zod';
import { ACCEPT, readText } from '../../kube/calls.ts';
import { parseQuantity } from '../../model/quantity.ts';
import { at, type JsonRecord, type JsonValue, type KubeObject, listAt } from '../objects.ts';
import { collectionOf, ROLE_BINDINGS, ROLES } from './built-in-types.ts';
import type { StatusCause } from './errors.ts';
import type { Store } from './store.ts';

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

/** Match conditions of webhooks: CEL with the API server's variables and the functions that the manifests use. */

/** Source: k8s.io/apiserver/pkg/cel/library/quantity.go */
class CelQuantity {
  readonly nano: bigint;
  constructor(text: string) {
    this.nano = parseQuantity(text).nano;
  }
}

interface AccessRequest {
  readonly account?: { readonly namespace: string; readonly name: string };
  readonly group?: string;
  readonly resource?: string;
  readonly namespace?: string;
  readonly verb?: string;
}

/** Each method of an expression's `authorizer` returns a narrower one. Source: k8s.io/apiserver/pkg/cel/library/authz.go */
class Authorizer {
  readonly #store: Store;
  readonly #request: AccessRequest;

  constructor(store: Store, request: AccessRequest = {}) {
    this.#store = store;
    this.#request = request;
  }

  with(part: AccessRequest): Authorizer {
    return new Authorizer(this.#store, { ...this.#request, ...part });
  }

  /** Whether a RoleBinding grants it. Users of the sandbox may do everything; only expressions ask for a grant. */
  get isAllowed(): boolean {
    const { account, group, resource, namespace, verb } = this.#request;
    const subject = { kind: 'ServiceAccount', ...account };
    const access = { apiGroups: group, resources: resource, verbs: verb };
    return this.#store.list(collectionOf(ROLE_BINDINGS)).some((binding) => {
      if (binding.metadata.namespace !== namespace) return false;
      const role = this.#store.get(collectionOf(ROLES), `${namespace}/${String(at(binding, 'roleRef', 'name'))}`);
      const isSubject = listAt(binding, 'subjects').some((candidate) =>
        Object.entries(subject).every(([key, value]) => at(candidate, key) === value),
      );
      const grants = (rule: JsonValue) =>
        Object.entries(access).every(([key, value]) => listAt(rule, key).includes(value ?? ''));
      return isSubject && listAt(role, 'rules').some(grants);
    });
  }
}

const compare = (a: bigint, b: bigint): bigint => {
  if (a === b) return 0n;
  return a < b ? -1n : 1n;
};

const environment = new Environment({ unlistedVariablesAreDyn: true, enableOptionalTypes: true })
  .registerType('Quantity', CelQuantity)
  .registerFunction('quantity(dyn): Quantity', (text: string) => new CelQuantity(text))
  .registerFunction('Quantity.compareTo(Quantity): int', (a: CelQuantity, b: CelQuantity) => compare(a.nano, b.nano))
  .registerFunction('Quantity.asApproximateFloat(): double', ({ nano }: CelQuantity) => Number(nano) / 1e9)
  .registerType('Authorizer', Authorizer)
  .registerFunction('Authorizer.serviceAccount(string, string): Authorizer', (a: Authorizer, namespace, name) =>
    a.with({ account: { namespace, name } }),
  )
  .registerFunction('Authorizer.group(string): Authorizer', (a: Authorizer, group) => a.with({ group }))
  .registerFunction('Authorizer.resource(string): Authorizer', (a: Authorizer, resource) => a.with({ resource }))
  .registerFunction('Authorizer.namespace(string): Authorizer', (a: Authorizer, namespace) => a.with({ namespace }))
  .registerFunction('Authorizer.check(string): Authorizer', (a: Authorizer, verb) => a.with({ verb }))
  .registerFunction('Authorizer.allowed(): bool', (a: Authorizer) => a.isAllowed);

const programs = new Map<string, ParseResult>();

export function compileCondition(expression: string): ParseResult {
  const program = programs.get(expression) ?? environment.parse(expression);
  programs.set(expression, program);
  return program;
}

/** A false condition counts more than one that fails. @throws Error if none is false and one fails */
export function allConditionsHold(expressions: readonly string[], request: JsonRecord, store: Store): boolean {
  const { object = null, oldObject = null } = request;
  const variables = { object, oldObject, request, authorizer: new Authorizer(store) };
  let failure: unknown;
  for (const expression of expressions) {
    try {
      if (compileCondition(expression)(variables) !== true) return false;
    } catch (error) {
      failure = error;
    }
  }
  if (failure !== undefined) throw failure;
  return true;
}
