import { Environment, type ParseResult } from '@marcbachmann/cel-js';
import { parseQuantity } from '../../model/quantity.ts';
import { at, type JsonRecord, type JsonValue } from '../objects.ts';
import { collectionOf, ROLE_BINDINGS, ROLES } from './built-in-types.ts';
import type { Store } from './store.ts';

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

function listAt(object: JsonValue | undefined, key: string): JsonValue[] {
  const value = at(object, key);
  return Array.isArray(value) ? value : [];
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
