import { PlumblineError } from '../../model/errors.ts';
import type { Json, JsonObject } from '../objects.ts';

/** One entry in the details of a Status: the field and its error. */
export interface Cause {
  readonly reason: string;
  readonly field?: string;
  readonly message: string;
}

export const invalidValue = (field: string, value: Json | undefined, why: string): Cause => ({
  reason: 'FieldValueInvalid',
  field,
  message: `Invalid value: ${JSON.stringify(value)}: ${why}`,
});
export const requiredValue = (field: string, why = ''): Cause => ({
  reason: 'FieldValueRequired',
  field,
  message: `Required value${why === '' ? '' : `: ${why}`}`,
});
export const forbiddenChange = (field: string, why: string): Cause => ({
  reason: 'FieldValueForbidden',
  field,
  message: `Forbidden: ${why}`,
});

interface Details {
  readonly name?: string;
  readonly group?: string;
  readonly kind?: string;
  readonly uid?: string;
  readonly causes?: readonly Cause[];
  readonly retryAfterSeconds?: number;
}

/** An error of the API server, with the Status that the client receives. `code` is the reason of the Status. */
export class ApiError extends PlumblineError {
  /** The HTTP status code. */
  readonly http: number;
  readonly details: Details | undefined;

  constructor(http: number, reason: string, message: string, details?: Details, options?: ErrorOptions) {
    super(reason, message, options);
    this.http = http;
    this.details = details;
  }

  toStatus(): JsonObject {
    return {
      kind: 'Status',
      apiVersion: 'v1',
      metadata: {},
      status: 'Failure',
      message: this.message,
      reason: this.code,
      ...(this.details && { details: JSON.parse(JSON.stringify(this.details)) as JsonObject }),
      code: this.http,
    };
  }
}

/** The resource in an error: its plural, and its group unless it is core. */
interface Named {
  readonly plural: string;
  readonly kind: string;
  readonly group: string;
}

const qualified = ({ plural, group }: Named) => (group === '' ? plural : `${plural}.${group}`);
const detailsOf = (type: Named, name: string) => ({
  name,
  kind: type.plural,
  ...(type.group !== '' && { group: type.group }),
});

export const notFound = (type: Named, name: string) =>
  new ApiError(404, 'NotFound', `${qualified(type)} "${name}" not found`, detailsOf(type, name));

export const noSuchPath = () =>
  new ApiError(404, 'NotFound', 'the server could not find the requested resource', { causes: [] });

export const alreadyExists = (type: Named, name: string) =>
  new ApiError(409, 'AlreadyExists', `${qualified(type)} "${name}" already exists`, detailsOf(type, name));

export const conflict = (type: Named, name: string, why: string) =>
  new ApiError(
    409,
    'Conflict',
    `Operation cannot be fulfilled on ${qualified(type)} "${name}": ${why}`,
    detailsOf(type, name),
  );

export const MODIFIED = 'the object has been modified; please apply your changes to the latest version and try again';

export const invalid = (type: Named, name: string, causes: readonly Cause[]) => {
  const said = causes.map(({ field, message }) => (field === undefined ? message : `${field}: ${message}`));
  return new ApiError(
    422,
    'Invalid',
    `${type.group === '' ? type.kind : `${type.kind}.${type.group}`} "${name}" is invalid: ${said.length === 1 ? said[0] : `[${said.join(', ')}]`}`,
    { ...detailsOf(type, name), kind: type.kind, causes },
  );
};

export const forbidden = (type: Named, name: string, why: string) =>
  new ApiError(403, 'Forbidden', `${qualified(type)} "${name}" is forbidden: ${why}`, detailsOf(type, name));

export const badRequest = (message: string, options?: ErrorOptions) =>
  new ApiError(400, 'BadRequest', message, undefined, options);

/** @param faults such as `unknown field "spec.cpus"` */
export const strictDecoding = (type: Named & { readonly version: string }, faults: readonly string[]) =>
  badRequest(
    `${type.kind} in version "${type.version}" cannot be handled as a ${type.kind}: strict decoding error: ${faults.join(', ')}`,
  );

export const internal = (message: string, options?: ErrorOptions) =>
  new ApiError(500, 'InternalError', `Internal error occurred: ${message}`, undefined, options);

export const notAcceptable = () => new ApiError(406, 'NotAcceptable', '406: Not Acceptable');

export const expired = (message: string) => new ApiError(410, 'Expired', message);

export const unauthorized = () => new ApiError(401, 'Unauthorized', 'Unauthorized');

export const methodNotAllowed = () =>
  new ApiError(405, 'MethodNotAllowed', 'the server does not allow this method on the requested resource');

export const unsupportedMediaType = (got: string, allowed: readonly string[]) =>
  new ApiError(
    415,
    'UnsupportedMediaType',
    `the body of the request was in an unknown format (${got || 'none'}) - accepted media types include: ${allowed.join(', ')}`,
  );

export const tooLarge = (bytes: number) =>
  new ApiError(413, 'RequestEntityTooLarge', `Request entity too large: limit is ${bytes}`);
