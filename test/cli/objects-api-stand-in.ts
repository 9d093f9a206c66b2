import { type KubeClient, KubeError } from '../../kube/client.ts';

export interface ApiObject {
  readonly metadata: { readonly name: string; readonly namespace?: string; readonly [key: string]: unknown };
  readonly [key: string]: unknown;
}

/** Objects by their collection, such as `/api/v1/pods`. */
export type Objects = Readonly<Record<string, readonly ApiObject[]>>;

/** A read-only API server: objects, lists, label and field selectors. A kind without a list is not installed. */
export function createObjectsApi(objects: Objects): KubeClient {
  const refuse = async () => {
    throw new KubeError(405, 'MethodNotAllowed', 'nothing is written here');
  };
  return {
    async get(path, { query = {} } = {}) {
      const [, prefix = '', namespace, rest = ''] =
        /^(\/apis?\/(?:[^/]+\/)?v[^/]+)(?:\/namespaces\/([^/]+))?\/(.+)$/.exec(path) ?? [];
      const [plural = '', name, ...more] = rest.split('/');
      const isNamespace = prefix === '/api/v1' && plural === 'namespaces' && name !== undefined;
      if (isNamespace && hasNamespace(objects, name)) return { metadata: { name } };
      const all = objects[`${prefix}/${plural}`];
      if (all === undefined || more.length > 0) throw new KubeError(404, 'NotFound', `GET ${path}: 404 NotFound`);
      const within = all.filter(({ metadata }) => namespace === undefined || metadata.namespace === namespace);
      if (name === undefined)
        return { metadata: { resourceVersion: '1' }, items: within.filter((one) => isSelected(one, query)) };
      const found = within.find(({ metadata }) => metadata.name === decodeURIComponent(name));
      if (found === undefined) throw new KubeError(404, 'NotFound', `GET ${path}: 404 NotFound`);
      return found;
    },
    create: refuse,
    replace: refuse,
    patch: refuse,
    delete: refuse,
    watch: refuse,
    close: async () => undefined,
  };
}

/** Every object is in a namespace that exists. */
function hasNamespace(objects: Objects, name: string): boolean {
  return Object.values(objects).some((list) => list.some(({ metadata }) => metadata.namespace === name));
}

function isSelected(object: ApiObject, query: Readonly<Record<string, unknown>>): boolean {
  const terms = (selector: unknown) => `${selector ?? ''}`.split(',').filter((term) => term !== '');
  const labels = (object.metadata['labels'] ?? {}) as Readonly<Record<string, string>>;
  const matches = (term: string, read: (key: string) => unknown) => {
    const [, key = '', wanted] = /^([^=]+)=(.*)$/.exec(term) ?? [];
    return `${read(key) ?? ''}` === wanted;
  };
  return (
    terms(query['labelSelector']).every((term) => matches(term, (key) => labels[key])) &&
    terms(query['fieldSelector']).every((term) => matches(term, (path) => at(object, path)))
  );
}

function at(object: unknown, path: string): unknown {
  return path.split('.').reduce<unknown>((value, key) => (value as Record<string, unknown> | undefined)?.[key], object);
}
