import type { KubeObject } from '../objects.ts';
import { badRequest, expired } from './errors.ts';
import { collectionOf, type ResourceType } from './resource-types.ts';
import type { Predicate } from './selectors.ts';
import type { Store } from './store.ts';

export interface ListOptions {
  readonly namespace?: string | undefined;
  readonly matches: Predicate;
  /** Largest number of objects; 0 for all. */
  readonly limit?: number;
  /** The continue token of the previous page. */
  readonly token?: string | undefined;
}

export interface Page {
  readonly items: readonly KubeObject[];
  /** The version of the list; a watch can continue from it. */
  readonly version: number;
  readonly token?: string;
  readonly remaining?: number;
}

/**
 * Lists objects by key. Every page of a list has the state at the version of the first page.
 * @throws ApiError 400 for an invalid token, 410 if the first page is too old
 */
export function listPage(store: Store, type: ResourceType, options: ListOptions): Page {
  const { namespace, matches, limit = 0, token } = options;
  const from = token === undefined ? undefined : readToken(token);
  const version = from?.version ?? store.version;
  const entries = store.list(collectionOf(type), version);
  if (!entries) {
    throw expired(
      'The provided continue parameter is too old to display a consistent list result. You can start a new list without the continue parameter.',
    );
  }
  const wanted = entries.filter(
    ([key, object]) =>
      (from === undefined || key > from.after) &&
      (namespace === undefined || object.metadata.namespace === namespace) &&
      matches(object),
  );
  const page = limit > 0 ? wanted.slice(0, limit) : wanted;
  const items = page.map(([, object]) => object);
  const last = page.at(-1);
  if (last === undefined || page.length === wanted.length) return { items, version };
  return { items, version, token: writeToken(version, last[0]), remaining: wanted.length - page.length };
}

function writeToken(version: number, after: string): string {
  return Buffer.from(JSON.stringify({ v: 'meta.k8s.io/v1', rv: version, start: after })).toString('base64url');
}

function readToken(token: string): { version: number; after: string } {
  try {
    const { rv, start } = JSON.parse(Buffer.from(token, 'base64url').toString('utf8')) as {
      rv: unknown;
      start: unknown;
    };
    if (typeof rv === 'number' && typeof start === 'string') return { version: rv, after: start };
  } catch (error) {
    throw badRequest('continue key is not valid', { cause: error });
  }
  throw badRequest('continue key is not valid');
}
