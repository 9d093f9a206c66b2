import { PlumblineError } from '../../model/errors.ts';

/** A request that violates the protocol; the answer has the message in the protocol's own Error field. */
export class ArgsError extends PlumblineError {
  constructor(message: string, options?: ErrorOptions) {
    super('extender-args', message, options);
  }
}
