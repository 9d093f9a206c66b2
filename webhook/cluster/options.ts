import type { KubeClient } from '../../kube/client.ts';
import type { Logger } from '../../runtime/log.ts';

/** What every cache of the webhook is given. */
export interface CacheOptions {
  readonly client: KubeClient;
  readonly log: Logger;
  /** Monotonic seconds. */
  readonly now: () => number;
}
