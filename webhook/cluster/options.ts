import type { KubeClient } from '../../kube/client.ts';
import type { Logger } from '../../runtime/log.ts';

/** Options of every cache of the webhook. */
export interface CacheOptions {
  readonly client: KubeClient;
  readonly log: Logger;
  /** Monotonic seconds. */
  readonly now: () => number;
}

/**
 * Objects in a page of a list. Larger pages of a large cluster would create more garbage than the data that is kept.
 */
export const LIST_PAGE = 100;
