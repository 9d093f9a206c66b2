import { type JsonValue, type KubeObject, sameJson } from '../objects.ts';
import type { Admit, Operation } from './admission.ts';
import { apiVersionOf, collectionOf, NAMESPACES, type ResourceType } from './built-in-types.ts';
import type { Call, DeleteOptions, Target } from './call.ts';
import { badRequest, conflict, invalid, MODIFIED, notFoundError, objectError, undecodable } from './errors.ts';
import { admitMigration } from './migrations.ts';
import type { OpenApi } from './openapi.ts';
import { APPLY_PATCH, applyPatch } from './patch.ts';
import { applyDefaults, deletionOf, isFinished, prepareCreate, prepareUpdate } from './preparation.ts';
import { causeOf, type SchemaFault } from './schema-check.ts';
import type { Store } from './store.ts';
import { checkForm, validate } from './validation.ts';

const MAX_ATTEMPTS = 5;

const keyOf = (namespace: string | undefined, name: string) =>
  namespace === undefined ? name : `${namespace}/${name}`;

/** What the API server does to an object between a request and the store. It remembers nothing. */
export class Registry {
  readonly #store: Store;
  readonly #admission: Admit;
  readonly #openApi: Pick<OpenApi, 'faults'>;

  constructor(store: Store, admission: Admit, openApi: Pick<OpenApi, 'faults'>) {
    this.#store = store;
    this.#admission = admission;
    this.#openApi = openApi;
  }

  #find({ type, namespace, name }: Target) {
    return this.#store.get(collectionOf(type), keyOf(namespace, name));
  }

  get(target: Target): KubeObject {
    const object = this.#find(target);
    if (!object) throw notFoundError(target.type, target.name);
    return object;
  }

  #decode(type: ResourceType, body: JsonValue, call: Call): KubeObject {
    const object = checkForm(type, apiVersionOf(type), body);
    return checkFields(type, object, this.#openApi.faults(type, object), call);
  }

  #admit(target: Target, operation: Operation, call: Call, object?: KubeObject, oldObject?: KubeObject) {
    return this.#admission({ subresource: '', ...target, operation, object, oldObject, call });
  }

  /** A custom resource is checked in the form that is stored. */
  #checkValues(type: ResourceType, object: KubeObject) {
    const wrong = type.custom ? this.#openApi.faults(type, object).filter(({ kind }) => kind !== 'unknown') : [];
    if (wrong.length > 0) throw invalid(type, object.metadata.name, wrong.map(causeOf));
  }

  #enterNamespace(type: ResourceType, namespace: string, { metadata }: KubeObject) {
    if (metadata.namespace && metadata.namespace !== namespace) {
      throw badRequest('the namespace of the provided object does not match the namespace sent on the request');
    }
    metadata.namespace = namespace;
    const home = this.#store.get(collectionOf(NAMESPACES), namespace);
    if (!home) throw notFoundError(NAMESPACES, namespace);
    if (home.metadata.deletionTimestamp) {
      const why = `unable to create new content in namespace ${namespace} because it is being terminated`;
      throw objectError(403, 'Forbidden', type, metadata.name ?? '', `is forbidden: ${why}`);
    }
  }

  async change(target: Target, call: Call, edit: (current: KubeObject) => KubeObject): Promise<KubeObject> {
    const { type, namespace, name, subresource = '' } = target;
    const collection = collectionOf(type);
    const key = keyOf(namespace, name);
    for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt++) {
      const current = this.get(target);
      const updated = prepareUpdate(type, subresource, current, edit(current));
      const admitted = (await this.#admit(target, 'UPDATE', call, updated, current)) ?? updated;
      const next = prepareUpdate(type, subresource, current, admitted);
      if (subresource !== 'binding') validate(type, next, current);
      this.#checkValues(type, next);
      if (this.#store.get(collection, key) !== current) continue;
      if (call.dryRun || sameJson(current, next)) return next;
      if (!isFinished(next)) return this.#store.put(collection, key, next);
      this.#store.remove(collection, key);
      return next;
    }
    throw conflict(type, name, MODIFIED);
  }

  async create(type: ResourceType, namespace: string | undefined, body: JsonValue, call: Call) {
    const sent = this.#decode(type, body, call);
    if (namespace === undefined) delete sent.metadata.namespace;
    else this.#enterNamespace(type, namespace, sent);
    const target = { type, namespace, name: sent.metadata.name ?? '' };
    const defaulted = applyDefaults(type, structuredClone(sent));
    const admitted = (await this.#admit(target, 'CREATE', call, defaulted)) ?? defaulted;
    const object = prepareCreate(type, applyDefaults(type, admitted));
    admitMigration(this.#store, type, object);
    validate(type, object);
    this.#checkValues(type, object);
    const { name } = object.metadata;
    const key = keyOf(namespace, name);
    if (this.#store.get(collectionOf(type), key)) throw objectError(409, 'AlreadyExists', type, name, 'already exists');
    return call.dryRun ? object : this.#store.put(collectionOf(type), key, object);
  }

  update(target: Target, body: JsonValue, call: Call): Promise<KubeObject> {
    const sent = this.#decode(target.type, body, call);
    if (target.namespace !== undefined) sent.metadata.namespace ??= target.namespace;
    if (!sent.metadata.name) throw badRequest('name must be provided');
    return this.change(target, call, () => applyDefaults(target.type, structuredClone(sent)));
  }

  async patch(target: Target, format: string, body: JsonValue, call: Call): Promise<KubeObject> {
    const { type, namespace, name } = target;
    if (format === APPLY_PATCH) {
      if (!call.fieldManager) throw badRequest('fieldManager is required for apply patch');
      checkForm(type, apiVersionOf(type), body);
      if (!this.#find(target) && !target.subresource) {
        const sent = body as KubeObject;
        return this.create(type, namespace, { ...sent, metadata: { ...sent.metadata, name } }, call);
      }
    }
    return this.change(target, call, (current) => {
      const patched = this.#decode(type, applyPatch(type, current, format, body), call);
      return applyDefaults(type, structuredClone(patched));
    });
  }

  async delete(target: Target, options: DeleteOptions, call: Call): Promise<{ object: KubeObject; gone: boolean }> {
    const { type, name } = target;
    await this.#admit(target, 'DELETE', call, undefined, this.get(target));
    const current = this.get(target);
    const deletion = deletionOf(type, current, options);
    const gone = deletion === 'remove';
    if (call.dryRun || deletion === 'none') return { object: current, gone };
    const collection = collectionOf(type);
    const key = keyOf(target.namespace, name);
    return {
      object: gone ? (this.#store.remove(collection, key) ?? current) : this.#store.put(collection, key, deletion),
      gone,
    };
  }
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
