import { PlumblineError } from '../model/errors.ts';

export type BodyStatus = 400 | 408 | 411 | 413 | 415 | 503;

/** A body that the server refuses; `status` is the HTTP status of the answer. */
export class BodyError extends PlumblineError {
  readonly status: BodyStatus;

  constructor(status: BodyStatus, message: string, options?: ErrorOptions) {
    super('request-body', message, options);
    this.status = status;
  }
}
