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
import type { Call, Target } from './call.ts';
import { ApiError, internal } from './errors.ts';
import { applyJsonPatch } from './patch.ts';
import { labelSelectorObject } from './selectors.ts';
import type { Store } from './store.ts';
import { checkForm } from './validation.ts';
import { allConditionsHold, type Webhook, type WebhookClient, webhooksOf } from './webhook-client.ts';

const API_VERSION = 'admission.k8s.io/v1';
const KIND = 'AdmissionReview';

/** Parses a response as strictly as the API server. @param mutating only then a patch is allowed @throws Error */
function readVerdict(answer: JsonValue, uid: string, mutating: boolean) {
  const invalid = (why: string) => new Error(`received invalid webhook response: ${why}`);
  if (!isRecord(answer) || !isRecord(answer.response)) throw invalid('webhook response was absent');
  const { uid: answeredUid, allowed, patch, patchType, warnings, status } = answer.response;
  if (answeredUid !== uid) throw invalid(`expected response.uid="${uid}", got ${JSON.stringify(answeredUid)}`);
  if (answer.apiVersion !== API_VERSION || answer.kind !== KIND) {
    const actual = `${String(answer.apiVersion)}, Kind=${String(answer.kind)}`;
    throw invalid(`expected webhook response of ${API_VERSION}, Kind=${KIND}, got ${actual}`);
  }
  if (typeof allowed !== 'boolean') throw invalid('response.allowed must be true or false');
  const hasPatch = typeof patch === 'string' && patch !== '';
  if (hasPatch && !mutating) throw invalid('a validating webhook returned response.patch');
  if (hasPatch !== (patchType === 'JSONPatch')) {
    throw invalid('webhook returned response.patch but not response.patchType, or the reverse');
  }
  return {
    allowed,
    warnings: Array.isArray(warnings) ? warnings.map(String) : [],
    status: isRecord(status) ? status : undefined,
    patch: hasPatch ? decodePatch(patch) : undefined,
  };
}

type Verdict = ReturnType<typeof readVerdict>;

function decodePatch(patch: string): JsonValue {
  try {
    return JSON.parse(Buffer.from(patch, 'base64').toString('utf8')) as JsonValue;
  } catch (error) {
    // The call succeeded but its patch failed: the API server responds with 500 whatever the failure policy is.
    throw internal((error as Error).message, { cause: error });
  }
}

function denial(webhook: string, status: JsonRecord | undefined): ApiError {
  const by = `admission webhook "${webhook}" denied the request`;
  const explanation = [status?.message, status?.reason].find((text) => typeof text === 'string' && text !== '');
  const code = Math.max(400, typeof status?.code === 'number' ? status.code : 0);
  const reason = typeof status?.reason === 'string' ? status.reason : '';
  return new ApiError(code, reason, explanation === undefined ? `${by} without explanation` : `${by}: ${explanation}`);
}

export type Operation = 'CREATE' | 'UPDATE' | 'DELETE';

interface Attributes extends Required<Target> {
  readonly operation: Operation;
  readonly object: KubeObject | undefined;
  readonly oldObject: KubeObject | undefined;
  readonly call: Call;
}

/** Resolves to the object as webhooks have changed it. @throws ApiError */
export type Admit = (attributes: Attributes) => Promise<KubeObject | undefined>;

export function createAdmission(store: Store, client: WebhookClient): Admit {
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

  /** The object, changed if the webhook is called and returns a patch. */
  const mutate = async (webhook: Webhook, attributes: Attributes): Promise<KubeObject | undefined> => {
    const { type, object, call } = attributes;
    const verdict = await review(webhook, attributes, true);
    if (!verdict) return object;
    heed(webhook, verdict, call);
    if (verdict.patch === undefined || !object) return object;
    try {
      return checkForm(type, apiVersionOf(type), applyJsonPatch(object, verdict.patch));
    } catch (error) {
      throw internal((error as Error).message, { cause: error });
    }
  };

  const mutateAll = async (attributes: Attributes): Promise<KubeObject | undefined> => {
    let { object } = attributes;
    const resultsByWebhook = new Map<Webhook, KubeObject | undefined>();
    const callIfSelected = async (webhook: Webhook) => {
      const current = { ...attributes, object };
      if (!isCalled(webhook, current, store)) return;
      object = await mutate(webhook, current);
      resultsByWebhook.set(webhook, object);
    };
    for (const webhook of webhooks(MUTATING_WEBHOOKS)) await callIfSelected(webhook);
    for (const [webhook, result] of [...resultsByWebhook]) {
      if (webhook.reinvocationPolicy === 'IfNeeded' && !sameJson(result, object)) await callIfSelected(webhook);
    }
    return object;
  };

  return async (attributes) => {
    // Webhook configurations are never sent to webhooks, because a broken one could then not be repaired.
    if (attributes.type.group === MUTATING_WEBHOOKS.group) return attributes.object;
    const draft = attributes.object && structuredClone(attributes.object);
    const object = await mutateAll({ ...attributes, object: draft });
    const final = { ...attributes, object };
    const judges = webhooks(VALIDATING_WEBHOOKS).filter((webhook) => isCalled(webhook, final, store));
    const verdicts = await Promise.all(judges.map((webhook) => review(webhook, final, false)));
    for (const [index, verdict] of verdicts.entries()) {
      if (verdict) heed(judges[index]!, verdict, attributes.call);
    }
    return object;
  };
}

function heed(webhook: Webhook, { warnings, allowed, status }: Verdict, call: Call): void {
  for (const warning of warnings) call.warn(warning);
  if (!allowed) throw denial(webhook.name, status);
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

const OPTIONS = { CREATE: 'CreateOptions', UPDATE: 'UpdateOptions', DELETE: 'DeleteOptions' } as const;

function reviewOf({ operation, type, subresource, namespace, name, object, oldObject, call }: Attributes, uid: string) {
  const kind = { group: type.group, version: type.version, kind: type.kind };
  const resource = { group: type.group, version: type.version, resource: type.plural };
  const { username, groups, extra } = call.user;
  return {
    kind: KIND,
    apiVersion: API_VERSION,
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
      userInfo: { username, groups: [...groups], ...(extra && { extra: structuredClone(extra) as JsonRecord }) },
      object: object ?? null,
      oldObject: oldObject ?? null,
      dryRun: call.dryRun,
      options: {
        apiVersion: 'meta.k8s.io/v1',
        kind: OPTIONS[operation],
        ...(call.dryRun && { dryRun: ['All'] }),
        ...(call.fieldManager !== undefined && { fieldManager: call.fieldManager }),
      },
    },
  } satisfies JsonRecord;
}
