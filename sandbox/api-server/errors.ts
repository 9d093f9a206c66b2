import { PlumblineError } from '../../model/errors.ts';
import type { JsonRecord, JsonValue } from '../objects.ts';
import type { ResourceType } from './built-in-types.ts';

export type StatusCause = { reason: string; field?: string; message: string };

export const invalidValue = (field: string, value: JsonValue | undefined, why: string): StatusCause => {
  return { reason: 'FieldValueInvalid', field, message: `Invalid value: ${JSON.stringify(value)}: ${why}` };
};
export const requiredValue = (field: string, why?: string): StatusCause => {
  return { reason: 'FieldValueRequired', field, message: `Required value${why === undefined ? '' : `: ${why}`}` };
};
export const forbiddenChange = (field: string, why: string): StatusCause => {
  return { reason: 'FieldValueForbidden', field, message: `Forbidden: ${why}` };
};

/** An error of the API server, with the Status that the client receives. `code` is the reason of the Status. */
export class ApiError extends PlumblineError {
  readonly http: number;
  readonly details: JsonRecord | undefined;

  constructor(http: number, reason: string, message: string, details?: JsonRecord, options?: ErrorOptions) {
    super(reason, message, options);
    this.http = http;
    this.details = details;
  }

  toStatus(): JsonRecord {
    return {
      kind: 'Status',
      apiVersion: 'v1',
      metadata: {},
      status: 'Failure',
      message: this.message,
      reason: this.code,
      ...(this.details && { details: this.details }),
      code: this.http,
    };
  }
}

/** For calls about an object that may be gone. */
export function unlessNotFound(error: unknown): undefined {
  if (error instanceof ApiError && error.http === 404) return undefined;
  throw error;
}

type Named = Pick<ResourceType, 'plural' | 'kind' | 'group'>;

const qualified = (name: string, { group }: Named) => (group === '' ? name : `${name}.${group}`);
const detailsOf = (type: Named, name: string) => ({
  name,
  kind: type.plural,
  ...(type.group !== '' && { group: type.group }),
});

export const objectError = (http: number, reason: string, type: Named, name: string, why: string) =>
  new ApiError(http, reason, `${qualified(type.plural, type)} "${name}" ${why}`, detailsOf(type, name));

export const notFoundError = (type: Named, name: string) => objectError(404, 'NotFound', type, name, 'not found');

export const noSuchPath = () =>
  new ApiError(404, 'NotFound', 'the server could not find the requested resource', { causes: [] });

export const conflict = (type: Named, name: string, why: string) => {
  const message = `Operation cannot be fulfilled on ${qualified(type.plural, type)} "${name}": ${why}`;
  return new ApiError(409, 'Conflict', message, detailsOf(type, name));
};

/** @throws ApiError 409 if an object is not the expected one. @param field `UID` or `ResourceVersion` */
export function assertSame(type: Named, name: string, field: string, expected?: string, actual?: string): void {
  if (expected === undefined || expected === actual) return;
  const why = `${field} in precondition: ${expected}, ${field} in object meta: ${actual}`;
  throw conflict(type, name, `Precondition failed: ${why}`);
}

export const MODIFIED = 'the object has been modified; please apply your changes to the latest version and try again';

export const invalid = (type: Named, name: string, causes: readonly StatusCause[]) => {
  const texts = causes.map(({ field, message }) => (field === undefined ? message : `${field}: ${message}`));
  const list = texts.length === 1 ? texts[0] : `[${texts.join(', ')}]`;
  const message = `${qualified(type.kind, type)} "${name}" is invalid: ${list}`;
  return new ApiError(422, 'Invalid', message, { ...detailsOf(type, name), kind: type.kind, causes: [...causes] });
};

export const badRequest = (message: string, options?: ErrorOptions) =>
  new ApiError(400, 'BadRequest', message, undefined, options);

export const undecodable = ({ kind, version }: Pick<ResourceType, 'kind' | 'version'>, why: string) =>
  badRequest(`${kind} in version "${version}" cannot be handled as a ${kind}: ${why}`);

export const internal = (message: string, options?: ErrorOptions) =>
  new ApiError(500, 'InternalError', `Internal error occurred: ${message}`, undefined, options);

export const expired = (message: string) => new ApiError(410, 'Expired', message);

export function tooNew(version: number, current: number): ApiError {
  const causes = [{ reason: 'ResourceVersionTooLarge', message: 'Too large resource version' }];
  const message = `Timeout: Too large resource version: ${version}, current: ${current}`;
  return new ApiError(504, 'Timeout', message, { retryAfterSeconds: 1, causes });
}

export const methodNotAllowed = () =>
  new ApiError(405, 'MethodNotAllowed', 'the server does not allow this method on the requested resource');

export const unsupportedMediaType = (type: string, supported: readonly string[]) => {
  const list = `accepted media types include: ${supported.join(', ')}`;
  const message = `the body of the request was in an unknown format (${type || 'none'}) - ${list}`;
  return new ApiError(415, 'UnsupportedMediaType', message);
};
