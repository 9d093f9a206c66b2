import { PlumblineError } from '../model/errors.ts';

/**
 * An answer of the API server that is no success, or no answer at all (`status` 0). The message carries the server's
 * reason and text, never the object sent.
 */
export class KubeError extends PlumblineError {
  /** HTTP status; 0 when the server could not be reached. */
  readonly status: number;
  /** `reason` of the Status object: NotFound, AlreadyExists, Conflict, Forbidden, Expired … */
  readonly reason: string;

  constructor(status: number, reason: string, message: string, options?: ErrorOptions) {
    super('kube', message, options);
    this.status = status;
    this.reason = reason;
  }
}

/** Whether the API server answered 404: the object or its kind does not exist. */
export function isNotFound(error: unknown): boolean {
  return error instanceof KubeError && error.status === 404;
}

/** Whether a creation failed because the object exists (409, reason AlreadyExists). */
export function isAlreadyExists(error: unknown): boolean {
  return error instanceof KubeError && error.reason === 'AlreadyExists';
}

/** Another client wrote first: read again and decide again. */
export function isConflict(error: unknown): boolean {
  return error instanceof KubeError && error.status === 409 && error.reason !== 'AlreadyExists';
}
