import * as z from 'zod';
import { PlumblineError } from '../../model/errors.ts';

/** What a service account's token says of itself. It is not verified here: the API server does that. */
export interface TokenClaims {
  readonly namespace: string;
  readonly account: string;
  /** Seconds since the epoch. */
  readonly issued: number;
  readonly expires: number;
}

const claims = z.object({
  sub: z.string().regex(/^system:serviceaccount:[a-z0-9-]{1,63}:[a-z0-9.-]{1,253}$/),
  iat: z.number().nonnegative(),
  exp: z.number().nonnegative(),
});

/**
 * Reads a JSON Web Token's payload.
 * @throws PlumblineError, without any of the text, if it is none of a service account, or one that does not expire
 */
export function readTokenClaims(token: string): TokenClaims {
  const found = claims.safeParse(payloadOf(token));
  if (!found.success) {
    throw new PlumblineError(
      'token',
      `this is no token of a service account that expires (${found.error.issues[0]?.path.join('.') || 'no JSON Web Token'})`,
    );
  }
  const { sub, iat, exp } = found.data;
  const [, , namespace = '', account = ''] = sub.split(':');
  return { namespace, account, issued: iat, expires: exp };
}

function payloadOf(token: string): unknown {
  try {
    return JSON.parse(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString('utf8'));
  } catch {
    return undefined;
  }
}
