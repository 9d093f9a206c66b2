import { randomUUID } from 'node:crypto';
import { isRecord, type JsonRecord, type JsonValue, type KubeObject, sameJson } from '../objects.ts';
import {
  apiVersionOf,
  collectionOf,
  MUTATING_WEBHOOKS,
  NAMESPACES,
  type ResourceType,
  VALIDATING_WEBHOOKS,
} from './built-in-types.ts';
import { type Call, optionsObject, type Target } from './call.ts';
import { ApiError, internal } from './errors.ts';
import { allConditionsHold } from './match-conditions.ts';
import { applyJsonPatch } from './patch.ts';
import { labelSelectorObject } from './selectors.ts';
import type { Store } from './store.ts';
import { checkForm } from './validation.ts';
import { type Webhook, type WebhookClient, webhooksOf } from './webhook-client.ts';

interface Verdict {
  readonly allowed: boolean;
  readonly patch?: JsonValue;
  readonly warnings: readonly string[];
  readonly status: JsonRecord | undefined;
}

const REVIEW = 'admission.k8s.io/v1, Kind=AdmissionReview';

/** Parses a response as strictly as the API server. @param mutating only then a patch is allowed @throws Error */
function readVerdict(answer: JsonValue, uid: string, mutating: boolean): Verdict {
  if (!isRecord(answer) || !isRecord(answer.response)) throw invalidAnswer('webhook response was absent');
  const { response } = answer;
  if (response.uid !== uid) throw invalidAnswer(`expected response.uid="${uid}", got ${JSON.stringify(response.uid)}`);
  if (answer.apiVersion !== 'admission.k8s.io/v1' || answer.kind !== 'AdmissionReview') {
    throw invalidAnswer(
      `expected webhook response of ${REVIEW}, got ${String(answer.apiVersion)}, Kind=${String(answer.kind)}`,
    );
  }
  if (typeof response.allowed !== 'boolean') throw invalidAnswer('response.allowed must be true or false');
  const { patch, patchType } = response;
  const hasPatch = typeof patch === 'string' && patch !== '';
  if (hasPatch && !mutating) throw invalidAnswer('a validating webhook returned response.patch');
  if (hasPatch !== (patchType === 'JSONPatch')) {
    throw invalidAnswer('webhook returned response.patch but not response.patchType, or the reverse');
  }
  return {
    allowed: response.allowed,
    warnings: Array.isArray(response.warnings) ? response.warnings.map(String) : [],
    status: isRecord(response.status) ? response.status : undefined,
    ...(hasPatch && { patch: decodePatch(patch) }),
  };
}

function decodePatch(patch: string): JsonValue {
  try {
    return JSON.parse(Buffer.from(patch, 'base64').toString('utf8')) as JsonValue;
  } catch (error) {
    // The call succeeded but its patch failed: the API server responds with 500 whatever the failure policy is.
    throw new ApiError(500, 'InternalError', `Internal error occurred: ${(error as Error).message}`, undefined, {
      cause: error,
    });
  }
}

function invalidAnswer(why: string): Error {
  return new Error(`received invalid webhook response: ${why}`);
}

function denial(webhook: string, status: JsonRecord | undefined): ApiError {
  const by = `admission webhook "${webhook}" denied the request`;
  const explanation = [status?.message, status?.reason].find((text) => typeof text === 'string' && text !== '');
  const code = Math.max(400, typeof status?.code === 'number' ? status.code : 0);
  const reason = typeof status?.reason === 'string' ? status.reason : '';
  return new ApiError(code, reason, explanation === undefined ? `${by} without explanation` : `${by}: ${explanation}`);
}

const reviewed = (object: KubeObject | undefined): JsonValue => (object ? structuredClone(object) : null);

export type Operation = 'CREATE' | 'UPDATE' | 'DELETE';

interface Attributes extends Required<Target> {
  readonly operation: Operation;
  readonly object: KubeObject | undefined;
  readonly oldObject: KubeObject | undefined;
  readonly call: Call;
}

export type Admission = ReturnType<typeof createAdmission>;

export function createAdmission(store: Store, client: WebhookClient) {
  const webhooks = (type: ResourceType) => store.list(collectionOf(type)).flatMap(webhooksOf);

  const review = async (webhook: Webhook, attributes: Attributes, mutating: boolean): Promise<Verdict | undefined> => {
    const uid = randomUUID();
    try {
      return readVerdict(await client.call(webhook, reviewOf(attributes, uid)), uid, mutating);
    } catch (error) {
      if (error instanceof ApiError) throw error;
      if (webhook.failurePolicy === 'Ignore') return undefined;
      throw internal(`failed calling webhook "${webhook.name}": failed to call webhook: ${(error as Error).message}`, {
        cause: error,
      });
    }
  };

  const mutate = async (webhook: Webhook, attributes: Attributes): Promise<KubeObject | undefined> => {
    const verdict = await review(webhook, attributes, true);
    if (!verdict) return attributes.object;
    heed(webhook, verdict, attributes.call);
    if (verdict.patch === undefined || !attributes.object) return attributes.object;
    const { type, object } = attributes;
    try {
      return checkForm(type, apiVersionOf(type), applyJsonPatch(object, verdict.patch));
    } catch (error) {
      throw internal((error as Error).message, { cause: error });
    }
  };

  const mutateAll = async (attributes: Attributes): Promise<KubeObject | undefined> => {
    let { object } = attributes;
    const resultsByWebhook = new Map<Webhook, KubeObject | undefined>();
    const all = webhooks(MUTATING_WEBHOOKS);
    for (const webhook of all) {
      if (!isCalled(webhook, { ...attributes, object }, store)) continue;
      object = await mutate(webhook, { ...attributes, object });
      resultsByWebhook.set(webhook, object);
    }
    for (const [webhook, result] of resultsByWebhook) {
      if (webhook.reinvocationPolicy !== 'IfNeeded' || sameJson(result, object)) continue;
      if (!isCalled(webhook, { ...attributes, object }, store)) continue;
      object = await mutate(webhook, { ...attributes, object });
    }
    return object;
  };

  return {
    async admit(attributes: Attributes) {
      const { type } = attributes;
      // Webhook configurations are never sent to webhooks, because a broken one could then not be repaired.
      if (type.group === MUTATING_WEBHOOKS.group) return attributes.object;
      const draft = attributes.object && structuredClone(attributes.object);
      const object = await mutateAll({ ...attributes, object: draft });
      const final = { ...attributes, object };
      const judges = webhooks(VALIDATING_WEBHOOKS).filter((webhook) => isCalled(webhook, final, store));
      const verdicts = await Promise.all(judges.map((webhook) => review(webhook, final, false)));
      for (const [index, verdict] of verdicts.entries()) {
        if (verdict) heed(judges[index]!, verdict, attributes.call);
      }
      return object;
    },
  };
}

function heed(webhook: Webhook, verdict: Verdict, call: Call): void {
  for (const warning of verdict.warnings) call.warn(warning);
  if (!verdict.allowed) throw denial(webhook.name, verdict.status);
}

function isCalled(webhook: Webhook, attributes: Attributes, store: Store): boolean {
  return isSelected(webhook, attributes, store) && matchesConditions(webhook, attributes, store);
}

function matchesConditions({ name, matchConditions, failurePolicy }: Webhook, attributes: Attributes, store: Store) {
  if (matchConditions.length === 0) return true;
  const expressions = matchConditions.map(({ expression }) => expression);
  try {
    return allConditionsHold(expressions, reviewOf(attributes, '').request, store);
  } catch (error) {
    if (failurePolicy === 'Ignore') return false;
    const message = `admission webhook "${name}": match conditions: ${(error as Error).message}`;
    throw new ApiError(403, 'Forbidden', message, undefined, { cause: error });
  }
}

function isSelected(webhook: Webhook, attributes: Attributes, store: Store): boolean {
  if (!webhook.rules.some((rule) => matchesRule(rule, attributes))) return false;
  const { type, namespace, object, oldObject } = attributes;
  const isNamespace = type === NAMESPACES;
  const home = isNamespace ? (object ?? oldObject) : store.get(collectionOf(NAMESPACES), namespace ?? '');
  const selectsNamespace = labelSelectorObject(webhook.namespaceSelector);
  if ((namespace !== undefined || isNamespace) && !selectsNamespace(home?.metadata.labels ?? {})) return false;
  const selectsObject = labelSelectorObject(webhook.objectSelector);
  return [object, oldObject].some((candidate) => candidate && selectsObject(candidate.metadata.labels ?? {}));
}

function matchesRule(rule: Webhook['rules'][number], { operation, type, subresource }: Attributes): boolean {
  const among = (list: readonly string[], value: string) => list.includes('*') || list.includes(value);
  if (!among(rule.operations, operation) || !among(rule.apiGroups, type.group)) return false;
  if (!among(rule.apiVersions, type.version)) return false;
  if (rule.scope !== '*' && (rule.scope === 'Namespaced') !== type.namespaced) return false;
  return rule.resources.some((resource) => {
    const [plural = '', sub = ''] = resource.split('/');
    return (plural === '*' || plural === type.plural) && (sub === '*' || sub === subresource);
  });
}

function reviewOf({ operation, type, subresource, namespace, name, object, oldObject, call }: Attributes, uid: string) {
  const kind = { group: type.group, version: type.version, kind: type.kind };
  const resource = { group: type.group, version: type.version, resource: type.plural };
  const options = { CREATE: 'CreateOptions', UPDATE: 'UpdateOptions', DELETE: 'DeleteOptions' } as const;
  const { username, groups, extra } = call.user;
  return {
    kind: 'AdmissionReview',
    apiVersion: 'admission.k8s.io/v1',
    request: {
      uid,
      kind,
      resource,
      requestKind: kind,
      requestResource: resource,
      ...(subresource !== '' && { subResource: subresource, requestSubResource: subresource }),
      ...(name !== '' && { name }),
      ...(namespace !== undefined && { namespace }),
      operation,
      userInfo: {
        username,
        groups: [...groups],
        ...(extra && { extra: structuredClone(extra) as unknown as JsonRecord }),
      },
      object: reviewed(object),
      oldObject: reviewed(oldObject),
      dryRun: call.dryRun,
      options: optionsObject(options[operation], call),
    },
  } satisfies JsonRecord;
}
