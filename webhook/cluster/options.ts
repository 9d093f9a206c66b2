import type { KubeClient } from '../../kube/client.ts';
import type { Logger } from '../../runtime/log.ts';

/** What every cache of the webhook is given. */
export interface CacheOptions {
  readonly client: KubeClient;
  readonly log: Logger;
  /** Monotonic seconds. */
  readonly now: () => number;
}

/** Objects of one page of a list. A large cluster's would leave more garbage than what is kept of them. */
export const LIST_PAGE = 100;
