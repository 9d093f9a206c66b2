import * as z from 'zod';
import { PlumblineError } from '../../model/errors.ts';
import { parseJson } from '../../model/json.ts';
import { ProblemLog } from '../../runtime/problem-log.ts';
import { Backoff } from '../../runtime/time.ts';
import { readBounded, saveFile } from '../files/bounded-file.ts';
import { repeat, type Services } from '../lifecycle/duty.ts';

/** Seconds of lifetime to request: a day, the most that the policy plumbline-dpu-tokens allows. */
const TOKEN_LIFETIME_SECONDS = 86_400;
/** Maximum seconds between two reads of the file: an administrator may set the clock or replace the token. */
const CHECK_SECONDS = 60;
/** Seconds by which two clocks may differ. */
const CLOCK_SLACK_SECONDS = 300;
/** Bytes; a service account's token has about a thousand. */
const MAX_TOKEN_BYTES = 64 * 1024;
/** Seconds before a failed renewal is retried: initially and at most. */
const RETRY = { first: 5, most: 300 };

export interface TokenRenewalDeps extends Pick<Services, 'client' | 'log' | 'metrics'> {
  /** The kubeconfig's tokenFile, which the client reads for each request. */
  readonly tokenFile: string;
  /** Milliseconds since the epoch. */
  readonly wallClock: () => number;
  /** Seconds of a monotonic clock. */
  readonly nowSeconds: () => number;
}

const tokenRequest = z.object({ status: z.object({ token: z.string().min(1) }) });

/** The token that this process requested last. The monotonic clock measures its age, whatever the wall clock says. */
interface ObtainedToken {
  readonly token: string;
  readonly lifetimeSeconds: number;
  readonly atSeconds: number;
}

/**
 * Replaces the token in the file by a new one of the same account, in one step: its own when half of the lifetime is
 * left, an administrator's when less than half a day is left, since it may be as short-lived as its transport needs.
 */
export class TokenRenewal {
  readonly #deps: TokenRenewalDeps;
  /** Counts only while the file contains it. */
  #obtained: ObtainedToken | undefined;

  constructor(deps: TokenRenewalDeps) {
    this.#deps = deps;
  }

  run(signal: AbortSignal): Promise<void> {
    const { metrics, log } = this.#deps;
    const round = () =>
      this.#reconcile(signal).catch((error: unknown) => {
        metrics.dpuTokenFailures.inc();
        throw error;
      });
    const warning = 'renewing the DPU token failed; retrying, also after it expires';
    return repeat(signal, round, { problems: new ProblemLog(log), warning, pauses: new Backoff(RETRY) });
  }

  /** Renews the token if due. @returns seconds until the next read @throws the errors of a renewal */
  async #reconcile(signal: AbortSignal): Promise<number> {
    const { tokenFile, metrics } = this.#deps;
    const token = readBounded(tokenFile, MAX_TOKEN_BYTES).trim();
    const claims = readTokenClaims(token);
    const { left, least } = this.#validity(token, claims);
    metrics.dpuTokenExpiry.set(left);
    if (left > least) return Math.min(CHECK_SECONDS, Math.max(1, left - least));
    const obtained = await this.#renew(claims, signal);
    metrics.dpuTokenExpiry.set(obtained.lifetimeSeconds);
    return CHECK_SECONDS;
  }

  /** Seconds until the token expires, and the remaining seconds at which it is replaced. */
  #validity(token: string, { issued, expires }: TokenClaims) {
    const { nowSeconds, wallClock } = this.#deps;
    if (this.#obtained?.token === token) {
      const { lifetimeSeconds, atSeconds } = this.#obtained;
      return { left: lifetimeSeconds - (nowSeconds() - atSeconds), least: lifetimeSeconds / 2 };
    }
    const clock = wallClock() / 1000;
    // A clock before the token's issue time cannot measure its age.
    return { left: clock < issued - CLOCK_SLACK_SECONDS ? 0 : expires - clock, least: TOKEN_LIFETIME_SECONDS / 2 };
  }

  async #renew({ namespace, account }: TokenClaims, signal: AbortSignal): Promise<ObtainedToken> {
    const { client, tokenFile, log, nowSeconds } = this.#deps;
    const atSeconds = nowSeconds();
    const path = `/api/v1/namespaces/${namespace}/serviceaccounts/${account}/token`;
    const spec = { expirationSeconds: TOKEN_LIFETIME_SECONDS };
    const body = { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenRequest', spec };
    const { token } = tokenRequest.parse(await client.create(path, body, { signal })).status;
    // The API server may grant less than requested.
    const { issued, expires } = readTokenClaims(token);
    saveFile(tokenFile, `${token}\n`, { flush: true });
    this.#obtained = { token, lifetimeSeconds: expires - issued, atSeconds };
    const fields = { account: `${namespace}/${account}`, lifetimeSeconds: this.#obtained.lifetimeSeconds };
    log.info(fields, 'DPU token renewed');
    return this.#obtained;
  }
}

/** The claims of a service account's token. They are not verified here: the API server does that. */
type TokenClaims = ReturnType<typeof readTokenClaims>;

const claims = z.object({
  sub: z.string().regex(/^system:serviceaccount:[a-z0-9-]{1,63}:[a-z0-9.-]{1,253}$/),
  iat: z.number().nonnegative(),
  exp: z.number().nonnegative(),
});

/** @throws PlumblineError, without the text, if it is not a service account's token or does not expire */
export function readTokenClaims(token: string) {
  const payload = Buffer.from(token.split('.')[1] ?? '', 'base64url').toString('utf8');
  const result = claims.safeParse(parseJson(payload));
  if (!result.success) {
    const field = result.error.issues[0]?.path.join('.') || 'that it is a JSON Web Token';
    throw new PlumblineError('token', `not a service account token with an expiry (check ${field})`);
  }
  const { sub, iat, exp } = result.data;
  const [, , namespace = '', account = ''] = sub.split(':');
  /** `issued` and `expires`: seconds since the epoch. */
  return { namespace, account, issued: iat, expires: exp };
}
