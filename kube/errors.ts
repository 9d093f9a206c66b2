import { PlumblineError } from '../model/errors.ts';

/**
 * An error response of the API server, or no response at all (`status` 0). The message contains the server's reason and
 * text, never the object that was sent.
 */
export class KubeError extends PlumblineError {
  /** HTTP status; 0 if the client could not reach the server. */
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

/** Whether the server no longer has the version to watch or to page from (410): list again. */
export function isExpired(error: unknown): boolean {
  return error instanceof KubeError && error.status === 410;
}

/** Whether a creation failed because the object exists (409, reason AlreadyExists). */
export function isAlreadyExists(error: unknown): boolean {
  return error instanceof KubeError && error.reason === 'AlreadyExists';
}

/** Whether another client wrote first (409, reason Conflict): read the object and decide again. */
export function isConflict(error: unknown): boolean {
  return error instanceof KubeError && error.status === 409 && error.reason !== 'AlreadyExists';
}
