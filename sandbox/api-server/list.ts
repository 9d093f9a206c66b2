import type { JsonRecord, KubeObject } from '../objects.ts';
import { collectionOf } from './built-in-types.ts';
import { badRequest, expired, forbiddenChange, invalid, type StatusCause, tooNew } from './errors.ts';
import type { Exchange } from './requests.ts';
import type { Predicate } from './selectors.ts';
import type { Store } from './store.ts';

const LIST_OPTIONS = { kind: 'ListOptions', group: 'meta.k8s.io', plural: 'listoptions' };

/** Source: k8s.io/apimachinery/pkg/apis/meta/internalversion/validation. @throws ApiError 422 */
export function validateListOptions(query: URLSearchParams, isWatch: boolean): void {
  const match = query.get('resourceVersionMatch') ?? '';
  const version = query.get('resourceVersion') ?? '';
  const sendsInitialEvents = query.get('sendInitialEvents') !== null;
  const causes: StatusCause[] = [];
  const forbid = (field: string, isForbidden: boolean, why: string) => {
    if (isForbidden) causes.push(forbiddenChange(field, why));
  };
  const forbidMatch = (isForbidden: boolean, why: string) => forbid('resourceVersionMatch', isForbidden, why);
  if (isWatch) {
    forbidMatch(
      sendsInitialEvents && match !== 'NotOlderThan',
      'sendInitialEvents requires setting resourceVersionMatch to NotOlderThan',
    );
    forbidMatch(
      !sendsInitialEvents && match !== '',
      'resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided',
    );
  } else {
    const isSet = match !== '';
    forbidMatch(isSet && version === '', 'resourceVersionMatch is forbidden unless resourceVersion is provided');
    forbidMatch(isSet && !!query.get('continue'), 'resourceVersionMatch is forbidden when continue is provided');
    forbidMatch(
      match === 'Exact' && version === '0',
      'resourceVersionMatch "exact" is forbidden for resourceVersion "0"',
    );
    forbid('sendInitialEvents', sendsInitialEvents, 'sendInitialEvents is forbidden for list');
  }
  if (causes.length > 0) throw invalid(LIST_OPTIONS, '', causes);
}

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

/** The objects of the route's namespace that a predicate selects. */
export const selectedBy =
  ({ route: { namespace } }: Exchange, matches: Predicate): Predicate =>
  (object) =>
    (namespace === undefined || object.metadata.namespace === namespace) && matches(object);

/** One page of a collection's objects in the order of their keys, and the metadata of the list. */
export function pageOf(store: Store, exchange: Exchange, matches: Predicate) {
  const { query, route } = exchange;
  const token = readToken(query.get('continue') ?? '');
  const version = token?.rv ?? exactVersion(query) ?? store.version;
  if (version > store.version) throw tooNew(version, store.version);
  const all = store.listAt(collectionOf(route.type), version);
  if (!all) throw expired(token ? TOO_OLD : `too old resource version: ${version} (${store.compacted})`);
  const isSelected = selectedBy(exchange, matches);
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
  return { items: page.map(([, object]): KubeObject => object), metadata };
}

/** The version that the list must show, if not the newest one. */
function exactVersion(query: URLSearchParams): number | undefined {
  const isExact = query.get('resourceVersionMatch') === 'Exact' || readLimit(query) > 0;
  const version = readVersion(query);
  return isExact && version > 0 ? version : undefined;
}

/** 0 for any version. @throws ApiError 400 */
export function readVersion(query: URLSearchParams): number {
  const version = query.get('resourceVersion') || '0';
  if (!/^\d+$/.test(version)) throw badRequest(`invalid resource version: ${version}`);
  return Number(version);
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
