import { PlumblineError } from '../../model/errors.ts';

/** A request that is not of the protocol's form; answered in the protocol's own Error field. */
export class ArgsError extends PlumblineError {
  constructor(message: string, options?: ErrorOptions) {
    super('extender-args', message, options);
  }
}
