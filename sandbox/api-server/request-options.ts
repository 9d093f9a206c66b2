import type { IncomingMessage, ServerResponse } from 'node:http';
import { isObject } from '../objects.ts';
import { type DeleteOptions, FIELD_VALIDATIONS, type FieldValidation, type User } from './calls.ts';
import type { IncludeObject } from './columns.ts';
import { badRequest } from './errors.ts';
import { readBody } from './http.ts';
import type { Registry } from './registry.ts';
import type { Route } from './routes.ts';
import { fieldSelector, labelSelector, type Predicate } from './selectors.ts';
import type { Store } from './store.ts';

export interface HandlerDeps {
  readonly store: Store;
  readonly registry: Registry;
  /** Milliseconds since 1970. */
  readonly now: () => number;
  readonly bookmarkSeconds: number;
  /** Ends every watch when the server stops. */
  readonly stopping: AbortSignal;
}

/** One authenticated request on a resource. */
export interface Exchange {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly query: URLSearchParams;
  readonly route: Route;
  readonly user: User;
}

/** @throws ApiError 400 for any value but `All` */
export function readDryRun(query: URLSearchParams): boolean {
  const values = query.getAll('dryRun');
  const wrong = values.find((value) => value !== 'All');
  if (wrong !== undefined) {
    throw badRequest(`dryRun: Unsupported value: ${JSON.stringify(wrong)}: supported values: "All"`);
  }
  return values.length > 0;
}

/** @throws ApiError 400 for an unknown value */
export function readFieldValidation(query: URLSearchParams): FieldValidation | undefined {
  const value = query.get('fieldValidation') ?? '';
  const known = FIELD_VALIDATIONS.find((one) => one === value);
  if (value !== '' && known === undefined) {
    const values = FIELD_VALIDATIONS.map((one) => JSON.stringify(one)).join(', ');
    throw badRequest(`fieldValidation: Unsupported value: ${JSON.stringify(value)}: supported values: ${values}`);
  }
  return known;
}

/** Label selector and field selector as one predicate. @throws ApiError 400 for a malformed selector */
export function readSelectors({ query, route }: Pick<Exchange, 'query' | 'route'>): Predicate {
  const labels = labelSelector(query.get('labelSelector') ?? '');
  const fields = fieldSelector(route.type, query.get('fieldSelector') ?? '');
  return (object) => labels(object) && fields(object);
}

/** DeleteOptions from the body, and the grace period from the query. */
export async function readDeleteOptions({
  request,
  query,
}: Pick<Exchange, 'request' | 'query'>): Promise<DeleteOptions> {
  const body = await readBody(request);
  const grace = query.get('gracePeriodSeconds');
  return {
    ...(grace !== null && { gracePeriodSeconds: Number(grace) }),
    ...(isObject(body) && (body as DeleteOptions)),
  };
}

/** How much of each object a row of a Table contains. */
export function includeOf(query: URLSearchParams): IncludeObject {
  const include = query.get('includeObject');
  return include === 'None' || include === 'Object' ? include : 'Metadata';
}
