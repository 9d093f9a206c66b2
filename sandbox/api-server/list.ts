import type { JsonRecord, KubeObject } from '../objects.ts';
import { collectionOf, type ResourceType } from './built-in-types.ts';
import { badRequest, expired, forbiddenChange, invalid, type StatusCause, tooNew } from './errors.ts';
import type { Exchange } from './requests.ts';
import type { Predicate } from './selectors.ts';
import type { Store } from './store.ts';

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
      cells: type.columns.map((column) => column.cell(object, Date.now())),
      ...(include !== 'None' && { object: include === 'Object' ? object : partial(object) }),
    })),
  };
}

function partial({ metadata }: KubeObject): JsonRecord {
  return { kind: 'PartialObjectMetadata', apiVersion: 'meta.k8s.io/v1', metadata };
}

export function includeOf(query: URLSearchParams): IncludeObject {
  const include = query.get('includeObject');
  return include === 'None' || include === 'Object' ? include : 'Metadata';
}

const LIST_OPTIONS = { kind: 'ListOptions', group: 'meta.k8s.io', plural: 'listoptions' };

const matchIsForbidden = (why: string) => forbiddenChange('resourceVersionMatch', why);

/** Source: k8s.io/apimachinery/pkg/apis/meta/internalversion/validation. @throws ApiError 422 */
export function validateListOptions(query: URLSearchParams, isWatch: boolean): void {
  const causes = isWatch ? watchCauses(query) : listCauses(query);
  if (causes.length > 0) throw invalid(LIST_OPTIONS, '', causes);
}

function watchCauses(query: URLSearchParams): StatusCause[] {
  const match = query.get('resourceVersionMatch') ?? '';
  const sendsInitialEvents = query.get('sendInitialEvents') !== null;
  if (sendsInitialEvents && match !== 'NotOlderThan') {
    return [matchIsForbidden('sendInitialEvents requires setting resourceVersionMatch to NotOlderThan')];
  }
  if (!sendsInitialEvents && match !== '') {
    return [matchIsForbidden('resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided')];
  }
  return [];
}

function listCauses(query: URLSearchParams): StatusCause[] {
  const match = query.get('resourceVersionMatch') ?? '';
  const causes: StatusCause[] = [];
  if (match !== '' && !query.get('resourceVersion')) {
    causes.push(matchIsForbidden('resourceVersionMatch is forbidden unless resourceVersion is provided'));
  }
  if (match !== '' && query.get('continue')) {
    causes.push(matchIsForbidden('resourceVersionMatch is forbidden when continue is provided'));
  }
  if (match === 'Exact' && query.get('resourceVersion') === '0') {
    causes.push(matchIsForbidden('resourceVersionMatch "exact" is forbidden for resourceVersion "0"'));
  }
  if (query.get('sendInitialEvents') !== null) {
    causes.push(forbiddenChange('sendInitialEvents', 'sendInitialEvents is forbidden for list'));
  }
  return causes;
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
