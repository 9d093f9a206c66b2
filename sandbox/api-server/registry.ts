import { type JsonValue, type KubeObject, sameJson } from '../objects.ts';
import type { Admission, Operation } from './admission.ts';
import { apiVersionOf, collectionOf, NAMESPACES, type ResourceType } from './built-in-types.ts';
import { deletionOf, isFinished } from './deletion.ts';
import { badRequest, conflict, invalid, MODIFIED, notFoundError, objectError } from './errors.ts';
import type { OpenApi } from './openapi.ts';
import { APPLY_PATCH, applyPatch } from './patch.ts';
import { applyDefaults, prepareCreate, prepareUpdate } from './preparation.ts';
import type { Call, DeleteOptions } from './requests.ts';
import { causeOf, type SchemaFault } from './schema-check.ts';
import type { Store } from './store.ts';
import { checkForm, validate } from './validation.ts';

export interface Target {
  readonly type: ResourceType;
  readonly namespace: string | undefined;
  readonly name: string;
  readonly subresource?: string;
}

export type Registry = ReturnType<typeof createObjectRegistry>;

interface RegistryDeps {
  readonly store: Store;
  readonly admission: Admission;
  readonly openApi: Pick<OpenApi, 'faults'>;
}

const MAX_ATTEMPTS = 5;

const keyOf = (namespace: string | undefined, name: string) =>
  namespace === undefined ? name : `${namespace}/${name}`;

const undecodable = ({ kind, version }: ResourceType, why: string) =>
  badRequest(`${kind} in version "${version}" cannot be handled as a ${kind}: ${why}`);

export function createObjectRegistry({ store, admission, openApi }: RegistryDeps) {
  const decode = (type: ResourceType, body: JsonValue, call: Call) => {
    const object = checkForm(type, apiVersionOf(type), body);
    return checkFields(type, object, openApi.faults(type, object), call);
  };
  const find = ({ type, namespace, name }: Target) => store.get(collectionOf(type), keyOf(namespace, name));
  const get = (target: Target) => {
    const object = find(target);
    if (!object) throw notFoundError(target.type, target.name);
    return object;
  };

  const admit = (target: Target, operation: Operation, call: Call, object?: KubeObject, oldObject?: KubeObject) =>
    admission.admit({ subresource: '', ...target, operation, object, oldObject, call });

  /** A custom resource is checked in the form that is stored. */
  const checkValues = (type: ResourceType, object: KubeObject) => {
    const wrong = type.custom ? openApi.faults(type, object).filter(({ kind }) => kind !== 'unknown') : [];
    if (wrong.length > 0) throw invalid(type, object.metadata.name, wrong.map(causeOf));
  };

  const change = async (target: Target, call: Call, edit: (current: KubeObject) => KubeObject) => {
    const { type, namespace, name, subresource = '' } = target;
    const collection = collectionOf(type);
    const key = keyOf(namespace, name);
    for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt++) {
      const current = get(target);
      const updated = prepareUpdate(type, subresource, current, edit(current));
      const admitted = (await admit(target, 'UPDATE', call, updated, current)) ?? updated;
      const next = prepareUpdate(type, subresource, current, admitted);
      if (subresource !== 'binding') validate(type, next, current);
      checkValues(type, next);
      if (store.get(collection, key) !== current) continue;
      if (call.dryRun || sameJson(current, next)) return next;
      if (isFinished(next)) {
        store.remove(collection, key);
        return next;
      }
      return store.put(collection, key, next);
    }
    throw conflict(type, name, MODIFIED);
  };

  const create = async (type: ResourceType, namespace: string | undefined, body: JsonValue, call: Call) => {
    const sent = decode(type, body, call);
    if (namespace !== undefined) {
      if (sent.metadata.namespace && sent.metadata.namespace !== namespace) {
        throw badRequest('the namespace of the provided object does not match the namespace sent on the request');
      }
      sent.metadata.namespace = namespace;
      const home = store.get(collectionOf(NAMESPACES), namespace);
      if (!home) throw notFoundError(NAMESPACES, namespace);
      if (home.metadata.deletionTimestamp) {
        const why = `unable to create new content in namespace ${namespace} because it is being terminated`;
        throw objectError(403, 'Forbidden', type, sent.metadata.name ?? '', `is forbidden: ${why}`);
      }
    } else {
      delete sent.metadata.namespace;
    }
    const target = { type, namespace, name: sent.metadata.name ?? '' };
    const defaulted = applyDefaults(type, structuredClone(sent));
    const admitted = (await admit(target, 'CREATE', call, defaulted)) ?? defaulted;
    const object = prepareCreate(type, applyDefaults(type, admitted));
    validate(type, object);
    checkValues(type, object);
    const key = keyOf(namespace, object.metadata.name);
    if (store.get(collectionOf(type), key)) {
      throw objectError(409, 'AlreadyExists', type, object.metadata.name, 'already exists');
    }
    return call.dryRun ? object : store.put(collectionOf(type), key, object);
  };

  return {
    get,
    change,
    create,
    update(target: Target, body: JsonValue, call: Call) {
      const sent = decode(target.type, body, call);
      if (target.namespace !== undefined && sent.metadata.namespace === undefined) {
        sent.metadata.namespace = target.namespace;
      }
      if (!sent.metadata.name) throw badRequest('name must be provided');
      return change(target, call, () => applyDefaults(target.type, structuredClone(sent)));
    },
    async patch(target: Target, format: string, body: JsonValue, call: Call) {
      const { type, namespace, name } = target;
      if (format === APPLY_PATCH) {
        if (!call.fieldManager) throw badRequest('fieldManager is required for apply patch');
        checkForm(type, apiVersionOf(type), body);
        if (!find(target) && !target.subresource) {
          const sent = body as KubeObject;
          return create(type, namespace, { ...sent, metadata: { ...sent.metadata, name } }, call);
        }
      }
      return change(target, call, (current) => {
        const patched = decode(type, applyPatch(type, current, format, body), call);
        return applyDefaults(type, structuredClone(patched));
      });
    },
    async delete(target: Target, options: DeleteOptions, call: Call) {
      const { type, name } = target;
      await admit(target, 'DELETE', call, undefined, get(target));
      const current = get(target);
      const deletion = deletionOf(type, current, options);
      if (call.dryRun) return { object: current, gone: deletion.kind === 'remove' };
      const key = keyOf(target.namespace, name);
      if (deletion.kind === 'none') return { object: current, gone: false };
      if (deletion.kind === 'mark') return { object: store.put(collectionOf(type), key, deletion.object), gone: false };
      return { object: store.remove(collectionOf(type), key) ?? current, gone: true };
    },
  };
}

/** Refuses fields that cannot be decoded, and treats unknown ones as the client asks. */
function checkFields(type: ResourceType, object: KubeObject, faults: readonly SchemaFault[], call: Call): KubeObject {
  const { fieldValidation, warn } = call;
  const wrong = faults.find(({ kind }) => kind === 'type');
  if (wrong && !type.custom) {
    const field = `Go struct field ${type.kind}.${wrong.path} of type ${wrong.expected}`;
    throw undecodable(type, `json: cannot unmarshal ${wrong.actual} into ${field}`);
  }
  if (fieldValidation === undefined || fieldValidation === 'Ignore') return object;
  const unknown = faults.filter(({ kind }) => kind === 'unknown').map(({ path }) => `unknown field "${path}"`);
  if (unknown.length > 0 && fieldValidation === 'Strict') {
    throw undecodable(type, `strict decoding error: ${unknown.join(', ')}`);
  }
  for (const text of unknown) warn(text);
  return object;
}
