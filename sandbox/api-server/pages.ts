import type { JsonRecord, KubeObject } from '../objects.ts';
import { collectionOf } from './built-in-types.ts';
import { badRequest, expired, tooNew } from './errors.ts';
import type { Exchange } from './requests.ts';
import type { Predicate } from './selectors.ts';
import type { Store } from './store.ts';

/** Source of the form: k8s.io/apiserver/pkg/storage/continue.go */
interface ContinueToken {
  readonly v: string;
  /** All pages of a list show the objects of this version. */
  readonly rv: number;
  /** The first key of the next page: the last one of this page and a zero byte. */
  readonly start: string;
}

const TOKEN_VERSION = 'meta.k8s.io/v1';
const TOO_OLD =
  'The provided continue parameter is too old to display a consistent list result. You can start a new list without the continue parameter.';

const writeToken = (token: ContinueToken) => Buffer.from(JSON.stringify(token)).toString('base64url');

/** One page of a collection's objects in the order of their keys, and the metadata of the list. */
export function pageOf(store: Store, { query, route }: Exchange, matches: Predicate) {
  const { type, namespace } = route;
  const token = readToken(query.get('continue') ?? '');
  const version = token?.rv ?? exactVersion(query) ?? store.version;
  if (version > store.version) throw tooNew(version, store.version);
  const all = store.listAt(collectionOf(type), version);
  if (!all) throw expired(token ? TOO_OLD : `too old resource version: ${version} (${store.compacted})`);
  const isSelected = (object: KubeObject) =>
    (namespace === undefined || object.metadata.namespace === namespace) && matches(object);
  const entries = all.filter(([key, object]) => key >= (token?.start ?? '') && isSelected(object));
  // The cache of the API server, from which version 0 is served, has no pages.
  const limit = query.get('resourceVersion') === '0' ? 0 : readLimit(query);
  const page = limit === 0 ? entries : entries.slice(0, limit);
  const metadata: JsonRecord = { resourceVersion: String(version) };
  const last = page.at(-1);
  if (last !== undefined && page.length < entries.length) {
    metadata['continue'] = writeToken({ v: TOKEN_VERSION, rv: version, start: `${last[0]}\0` });
    if (!query.get('labelSelector') && !query.get('fieldSelector')) {
      metadata['remainingItemCount'] = entries.length - page.length;
    }
  }
  return { items: page.map(([, object]) => object), metadata };
}

/** The version that the list must show, if not the newest one. */
function exactVersion(query: URLSearchParams): number | undefined {
  const version = query.get('resourceVersion') ?? '';
  const isExact = query.get('resourceVersionMatch') === 'Exact' || readLimit(query) > 0;
  if (version === '' || version === '0') return undefined;
  if (!/^\d+$/.test(version)) throw badRequest(`invalid resource version: ${version}`);
  return isExact ? Number(version) : undefined;
}

function readLimit(query: URLSearchParams): number {
  const limit = query.get('limit') || '0';
  if (!/^\d+$/.test(limit)) throw badRequest(`limit must be a whole number from 0, got ${limit}`);
  return Number(limit);
}

function readToken(text: string): ContinueToken | undefined {
  if (text === '') return undefined;
  try {
    const token = JSON.parse(Buffer.from(text, 'base64url').toString()) as ContinueToken;
    if (token.v === TOKEN_VERSION && Number.isSafeInteger(token.rv) && typeof token.start === 'string') return token;
  } catch {
    // Refused below.
  }
  throw badRequest('continue key is not valid');
}
