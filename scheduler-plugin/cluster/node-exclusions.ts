import { BoundedMap } from '../../model/bounded-map.ts';
import { type Refused, refuse } from '../../model/placement/verdict.ts';
import type { ExtenderLogger } from '../telemetry/log-messages.ts';
import type { ClusterNode, Fleet } from './fleet.ts';
import type { PodNeeds } from './pod-needs.ts';
import { namesOf, type PodView } from './pod-view.ts';

/** Seconds of the first exclusion; each further one is twice as long, up to the maximum. */
const FIRST_SECONDS = 30;
const MAX_SECONDS = 600;
/** Seconds after the end of an exclusion for which the next one is longer. */
const MEMORY_SECONDS = 600;
const MAX_KINDS = 32;

interface Exclusion {
  readonly refused: Refused;
  /** The node's load when it refused the pod. */
  readonly load: string;
  readonly seconds: number;
  /** Before this time, a changed report does not end the exclusion. */
  readonly earliest: number;
  readonly latest: number;
}

export interface NodeExclusionsOptions {
  readonly fleet: Pick<Fleet, 'get'>;
  readonly onEnd: (node: string) => void;
  readonly log: ExtenderLogger;
  readonly now: () => number;
}

/**
 * Nodes that refused a pod that was predicted to fit get no more pods with equal needs: else the node would stay the
 * first choice for the pod's successor. An exclusion ends after a time, or when the node's report changes; if such a
 * change did not help last time, only after the time of the last.
 */
export class NodeExclusions {
  readonly #options: NodeExclusionsOptions;
  /** By node, and by the key of the needs, oldest first. */
  readonly #nodes = new Map<string, BoundedMap<string, Exclusion>>();

  constructor(options: NodeExclusionsOptions) {
    this.#options = options;
  }

  /** Why the node gets no pods with these needs for now, or undefined. */
  refusalOf(node: ClusterNode, { key }: Pick<PodNeeds, 'key'>): Refused | undefined {
    const exclusion = this.#nodes.get(node.name)?.get(key);
    return exclusion !== undefined && this.#holds(exclusion, node) ? exclusion.refused : undefined;
  }

  /** Its kubelet rejected the pod at admission, or else its agent refused to start it. */
  add(pod: PodView): void {
    const { node: nodeName = '', needs, rejected } = pod;
    const { key } = needs;
    const { fleet, onEnd, log, now } = this.#options;
    const node = fleet.get(nodeName);
    if (node === undefined) return;
    this.#sweep();
    const kinds = this.#nodes.get(nodeName) ?? new BoundedMap<string, Exclusion>(MAX_KINDS);
    const before = kinds.get(key);
    // The pod was on its way when an earlier one was refused.
    if (before !== undefined && this.#holds(before, node)) return;
    const seconds = before === undefined ? FIRST_SECONDS : Math.min(MAX_SECONDS, before.seconds * 2);
    const minimum = before !== undefined && now() < before.latest ? before.seconds : 0;
    kinds.delete(key);
    const [earliest, latest] = [now() + minimum, now() + seconds];
    const refused =
      rejected === undefined
        ? refuse('refused-on-host', 'the node’s agent has refused such a pod')
        : refuse('refused-by-kubelet', `its kubelet refused a pod of this shape: ${rejected}`);
    kinds.set(key, { refused, load: node.load, seconds, earliest, latest });
    this.#nodes.set(nodeName, kinds);
    for (const end of [minimum, seconds]) {
      if (end > 0) setTimeout(() => onEnd(nodeName), (end + 0.1) * 1000).unref();
    }
    const fields = { node: nodeName, ...namesOf(pod), rejection: rejected, reason: refused.text };
    log.warn({ ...fields, excludedSeconds: seconds }, 'node excluded for such pods');
  }

  #holds({ load, earliest, latest }: Exclusion, node: ClusterNode): boolean {
    const { now } = this.#options;
    return now() < (node.load === load ? latest : earliest);
  }

  #sweep(): void {
    const now = this.#options.now();
    for (const [node, kinds] of this.#nodes) {
      for (const [key, { latest }] of kinds) if (now - latest > MEMORY_SECONDS) kinds.delete(key);
      if (kinds.size === 0) this.#nodes.delete(node);
    }
  }
}
