import type { KubeClient } from '../../kube/client.ts';
import type { EventRecorder } from '../../kube/events.ts';
import type { ExtenderLogger } from './log-messages.ts';
import type { ExtenderMetrics } from './metrics.ts';

/** What the parts of the extender have in common. Each takes what it uses. */
export interface ExtenderContext {
  readonly client: KubeClient;
  readonly events: Pick<EventRecorder, 'record'>;
  readonly metrics: ExtenderMetrics;
  /** Whether this replica is the active one. */
  active(): boolean;
  readonly log: ExtenderLogger;
  /** Monotonic. */
  nowSeconds(): number;
}
