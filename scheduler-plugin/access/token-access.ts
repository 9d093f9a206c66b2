import { createHash } from 'node:crypto';
import type { KubeClient } from '../../kube/client.ts';
import type { Logger } from '../../runtime/log.ts';
import { type PodAttributes, type Review, reviewToken } from './reviews.ts';

export interface TokenAccess {
  /**
   * Whether the bearer of a token may read these pods. `busy`: too many tokens were reviewed within a short time;
   * `unavailable`: the API server did not answer. Never rejects.
   */
  review(token: string, attributes: PodAttributes): Promise<Review | 'busy' | 'unavailable'>;
}

export interface TokenAccessOptions {
  readonly client: Pick<KubeClient, 'create'>;
  readonly log: Logger;
  /** Monotonic seconds. */
  readonly now: () => number;
}

/** Seconds that an answer of the API server is cached. A revoked token is accepted for this time. */
const VALID = 10;
/** Maximum cached answers. */
const MOST = 256;
/** Maximum reviews at once, and per second after that: anyone who reaches the port can send tokens. */
const BURST = 20;
const RATE = 5;

/** Reviews tokens with a small cache. It stores digests of tokens, not the tokens. */
export function createTokenAccess({ client, log, now }: TokenAccessOptions): TokenAccess {
  const answers = new Map<string, { readonly review: Review; readonly until: number }>();
  let left = BURST;
  let filled = now();

  const mayAsk = (): boolean => {
    left = Math.min(BURST, left + (now() - filled) * RATE);
    filled = now();
    if (left < 1) return false;
    left--;
    return true;
  };
  const keep = (key: string, review: Review): void => {
    const [oldest] = answers.keys();
    if (answers.size >= MOST && oldest !== undefined) answers.delete(oldest);
    answers.set(key, { review, until: now() + VALID });
  };

  return {
    async review(token, attributes) {
      const key = createHash('sha256')
        .update(`${token}\n${JSON.stringify(attributes)}`)
        .digest('base64');
      const found = answers.get(key);
      if (found !== undefined && now() < found.until) return found.review;
      answers.delete(key);
      if (!mayAsk()) return 'busy';
      try {
        const review = await reviewToken(client, token, attributes);
        keep(key, review);
        return review;
      } catch (err) {
        log.warn({ err }, 'reviewing a token failed');
        return 'unavailable';
      }
    },
  };
}
