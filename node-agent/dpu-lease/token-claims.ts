import * as z from 'zod';
import { PlumblineError } from '../../model/errors.ts';

/** The claims of a service account's token. They are not verified here: the API server does that. */
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
 *
 * @throws PlumblineError, which contains none of the text, if it is not a token of a service account or does not expire
 */
export function readTokenClaims(token: string): TokenClaims {
  const found = claims.safeParse(payloadOf(token));
  if (!found.success) {
    throw new PlumblineError(
      'token',
      `not a service account token with an expiry (check ${found.error.issues[0]?.path.join('.') || 'that it is a JSON Web Token'})`,
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
