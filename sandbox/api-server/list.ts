import type { JsonRecord, KubeObject } from '../objects.ts';
import { collectionOf, type ResourceType } from './built-in-types.ts';
import { badRequest, expired } from './errors.ts';
import type { Predicate } from './selectors.ts';
import type { Store } from './store.ts';

interface ListOptions {
  readonly namespace?: string | undefined;
  readonly matches: Predicate;
  /** Largest number of objects; 0 for all. */
  readonly limit?: number;
  /** The continue token of the previous page. */
  readonly token?: string | undefined;
}

/**
 * Lists objects by key, with the version from which a watch can continue. Every page of a list has the state at the version of the first page.
 */
export function listPage(store: Store, type: ResourceType, options: ListOptions) {
  const { namespace, matches, limit = 0, token } = options;
  const from = token === undefined ? undefined : readToken(token);
  const version = from?.version ?? store.version;
  const entries = store.list(collectionOf(type), version);
  if (!entries) {
    throw expired(
      'The provided continue parameter is too old to display a consistent list result. You can start a new list without the continue parameter.',
    );
  }
  const selected = entries.filter(
    ([key, object]) =>
      (from === undefined || key > from.after) &&
      (namespace === undefined || object.metadata.namespace === namespace) &&
      matches(object),
  );
  const page = limit > 0 ? selected.slice(0, limit) : selected;
  const items = page.map(([, object]) => object);
  const last = page.at(-1);
  if (last === undefined || page.length === selected.length) return { items, version };
  const next = JSON.stringify({ v: 'meta.k8s.io/v1', rv: version, start: last[0] });
  const remaining = selected.length - page.length;
  return { items, version, token: Buffer.from(next).toString('base64url'), remaining };
}

function readToken(token: string): { version: number; after: string } {
  try {
    const text = Buffer.from(token, 'base64url').toString('utf8');
    const { rv, start } = JSON.parse(text) as { rv: unknown; start: unknown };
    if (typeof rv === 'number' && typeof start === 'string') return { version: rv, after: start };
  } catch (error) {
    throw badRequest('continue key is not valid', { cause: error });
  }
  throw badRequest('continue key is not valid');
}

/** The part of each object that a Table contains in addition to the cells. */
export type IncludeObject = 'None' | 'Metadata' | 'Object';

/** Whether a client requests a Table: the first supported media type of its Accept header decides. */
export function wantsTable(accept: string | undefined): boolean {
  for (const part of (accept ?? '').split(',')) {
    const [media, ...parameters] = part.split(';').map((text) => text.trim());
    if (media !== 'application/json' && media !== '*/*') continue;
    const parameterValues = new Map(parameters.map((text) => text.split('=', 2) as [string, string]));
    const as = parameterValues.get('as');
    if (as === undefined) return false;
    if (as === 'Table' && parameterValues.get('g') === 'meta.k8s.io' && parameterValues.get('v') === 'v1') return true;
  }
  return false;
}

export function tableOf(
  type: ResourceType,
  objects: readonly KubeObject[],
  metadata: JsonRecord,
  include: IncludeObject,
  now: number,
): JsonRecord {
  return {
    kind: 'Table',
    apiVersion: 'meta.k8s.io/v1',
    metadata,
    columnDefinitions: type.columns.map(({ name, type: kind = 'string', priority = 0 }) => ({
      name,
      type: kind,
      format: name === 'Name' ? 'name' : '',
      description: '',
      priority,
    })),
    rows: objects.map((object) => ({
      cells: type.columns.map((column) => column.cell(object, now)),
      ...(include !== 'None' && { object: include === 'Object' ? object : partial(object) }),
    })),
  };
}

function partial({ metadata }: KubeObject): JsonRecord {
  return { kind: 'PartialObjectMetadata', apiVersion: 'meta.k8s.io/v1', metadata };
}

/** How much of each object a row of a Table contains. */
export function includeOf(query: URLSearchParams): IncludeObject {
  const include = query.get('includeObject');
  return include === 'None' || include === 'Object' ? include : 'Metadata';
}
