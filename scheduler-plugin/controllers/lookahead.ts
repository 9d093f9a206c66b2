import { FairQueue } from '../../runtime/fair-queue.ts';
import { logFailure } from '../../runtime/log.ts';
import type { Fleet } from '../cluster/fleet.ts';
import type { PodNeeds } from '../cluster/pod-needs.ts';
import type { NodeVerdicts } from '../filter/node-verdicts.ts';
import type { ExtenderContext } from '../telemetry/context.ts';

/** Milliseconds of predictions at a time, and of the pause after them, in which calls are answered. */
const SLICE_MILLISECONDS = 5;
const PAUSE_MILLISECONDS = 5;
/** More pods do not wait for predictions; the namespace with the most then loses its first. */
const MAX_PODS = 1000;

interface WaitingPod {
  readonly needs: PodNeeds;
  /** Not predicted yet. */
  readonly nodes: string[];
}

interface LookaheadOptions extends Pick<ExtenderContext, 'log'> {
  readonly fleet: Pick<Fleet, 'get'>;
  readonly verdicts: Pick<NodeVerdicts, 'verdict'>;
}

/**
 * Continues the predictions of pods for which a filter call had no time, so that their next call finds the verdicts.
 * Owner: the pod; namespaces take turns. End: a node fits, none is left, the pod is settled, or it is filtered again.
 */
export class Lookahead {
  readonly #options: LookaheadOptions;
  readonly #pods = new FairQueue<WaitingPod>();
  #timer: NodeJS.Timeout | undefined;

  constructor(options: LookaheadOptions) {
    this.#options = options;
  }

  /** @param nodes in the order of the filter */
  add(needs: PodNeeds, nodes: readonly string[]): void {
    const oldest = this.#pods.size >= MAX_PODS ? this.#pods.oldestOfLargest() : undefined;
    if (oldest !== undefined) this.settled(oldest.needs);
    this.#pods.set(needs.namespace, needs.request.uid, { needs, nodes: fromBothEnds(nodes) });
    this.#schedule();
  }

  settled({ namespace, request }: Pick<PodNeeds, 'namespace' | 'request'>): void {
    this.#pods.delete(namespace, request.uid);
  }

  stop(): void {
    clearTimeout(this.#timer);
    this.#pods.clear();
  }

  #schedule(): void {
    if (this.#pods.size === 0) return;
    this.#timer ??= setTimeout(() => {
      this.#timer = undefined;
      this.#predict();
      this.#schedule();
    }, PAUSE_MILLISECONDS).unref();
  }

  #predict(): void {
    const { fleet, verdicts, log } = this.#options;
    const pod = this.#pods.take();
    if (pod === undefined) return;
    const { needs, nodes } = pod;
    const until = performance.now() + SLICE_MILLISECONDS;
    try {
      for (let name = nodes.shift(); name !== undefined; name = nodes.shift()) {
        if (verdicts.verdict(needs, fleet.get(name)).fits) return;
        if (performance.now() >= until) break;
      }
    } catch (err) {
      logFailure(log)(err);
    }
    if (nodes.length > 0) this.#pods.set(needs.namespace, needs.request.uid, pod);
  }
}

/** The last first: the filter begins with the fullest nodes, and where none of those fitted, the emptiest is the likeliest. */
function fromBothEnds(nodes: readonly string[]): string[] {
  const half = Math.ceil(nodes.length / 2);
  return nodes
    .slice(-half)
    .toReversed()
    .flatMap((name, i) => (i < nodes.length - half ? [name, nodes[i]!] : [name]));
}
