import { BoundedMap } from '../../model/bounded-map.ts';
import { type Refused, refuse } from '../../model/placement/verdict.ts';
import type { ExtenderContext } from '../telemetry/context.ts';
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
  readonly isExplained: boolean;
}

interface NodeExclusionsOptions extends Pick<ExtenderContext, 'log' | 'nowSeconds'> {
  readonly fleet: Pick<Fleet, 'get'>;
  readonly onEnd: (node: string) => void;
}

/** No namespace has this name. */
const ALL_NAMESPACES = '';

/**
 * Nodes that refused a pod that was predicted to fit get no more pods with equal needs: else the node would stay the
 * first choice for the pod's successor.
 *
 * Owner: the namespace of the refused pod, for whose pods alone the node is excluded. It is excluded for all if pods of
 * two namespaces were refused and no other pod explains that: a tenant can bind a pod to the node by hand, so that its
 * kubelet refuses another one of hers. End: a time, or the node's next report that differs; if such a change did not
 * help last time, only the time of the last.
 */
export class NodeExclusions {
  readonly #options: NodeExclusionsOptions;
  /** By node, by namespace, and by the key of the needs, oldest first. */
  readonly #nodes = new Map<string, Map<string, BoundedMap<string, Exclusion>>>();

  constructor(options: NodeExclusionsOptions) {
    this.#options = options;
  }

  /** Why the node gets no pods with these needs for now, or undefined. */
  refusalOf(node: ClusterNode, { key, namespace }: Pick<PodNeeds, 'key' | 'namespace'>): Refused | undefined {
    const scopes = this.#nodes.get(node.name);
    if (scopes === undefined) return undefined;
    const exclusions = [namespace, ALL_NAMESPACES].map((scope) => scopes.get(scope)?.get(key));
    return exclusions.find((exclusion) => exclusion !== undefined && this.#holds(exclusion, node))?.refused;
  }

  /**
   * Its kubelet rejected the pod at admission, or else its agent refused to start it.
   * @param isExplained whether another pod that was not predicted has been bound to the node since the prediction
   */
  add(pod: PodView, isExplained: boolean): void {
    const node = this.#options.fleet.get(pod.node ?? '');
    if (node === undefined) return;
    this.#sweep();
    this.#exclude(node, pod, pod.namespace, isExplained);
    const unexplained = [...(this.#nodes.get(node.name) ?? [])].filter(
      ([scope, kinds]) => scope !== ALL_NAMESPACES && kinds.get(pod.needs.key)?.isExplained === false,
    );
    if (!isExplained && unexplained.length > 1) this.#exclude(node, pod, ALL_NAMESPACES, false);
  }

  #exclude(node: ClusterNode, pod: PodView, scope: string, isExplained: boolean): void {
    const { needs, rejected } = pod;
    const { key } = needs;
    const { onEnd, log, nowSeconds } = this.#options;
    const scopes = this.#nodes.get(node.name) ?? new Map<string, BoundedMap<string, Exclusion>>();
    const kinds = scopes.get(scope) ?? new BoundedMap<string, Exclusion>(MAX_KINDS);
    const before = kinds.get(key);
    // The pod was on its way when an earlier one was refused.
    if (before !== undefined && this.#holds(before, node)) return;
    const seconds = before === undefined ? FIRST_SECONDS : Math.min(MAX_SECONDS, before.seconds * 2);
    const minimum = before !== undefined && nowSeconds() < before.latest ? before.seconds : 0;
    kinds.delete(key);
    const [earliest, latest] = [nowSeconds() + minimum, nowSeconds() + seconds];
    const refused =
      rejected === undefined
        ? refuse('refused-on-host', 'the node’s agent has refused such a pod')
        : refuse('refused-by-kubelet', `its kubelet refused a pod of this shape: ${rejected}`);
    kinds.set(key, { refused, load: node.load, seconds, earliest, latest, isExplained });
    this.#nodes.set(node.name, scopes.set(scope, kinds));
    for (const end of [minimum, seconds]) if (end > 0) setTimeout(() => onEnd(node.name), (end + 0.1) * 1000).unref();
    const namespace = scope === ALL_NAMESPACES ? 'all' : scope;
    const fields = { node: node.name, ...namesOf(pod), namespace, rejection: rejected, reason: refused.text };
    log.warn({ ...fields, excludedSeconds: seconds }, 'node excluded for such pods');
  }

  #holds({ load, earliest, latest }: Exclusion, node: ClusterNode): boolean {
    return this.#options.nowSeconds() < (node.load === load ? latest : earliest);
  }

  #sweep(): void {
    const now = this.#options.nowSeconds();
    for (const [node, scopes] of this.#nodes) {
      for (const [scope, kinds] of scopes) {
        for (const [key, { latest }] of kinds) if (now - latest > MEMORY_SECONDS) kinds.delete(key);
        if (kinds.size === 0) scopes.delete(scope);
      }
      if (scopes.size === 0) this.#nodes.delete(node);
    }
  }
}
