import { labelSelectorObject } from '../api-server/selectors.ts';
import type { KubeNode, KubePod, PodAffinityTerm } from '../objects.ts';

/** A pod with the Node on which it counts. */
export interface PlacedPod {
  readonly pod: KubePod;
  readonly node: KubeNode;
}

/** As in kube-scheduler's plugin InterPodAffinity, without the terms that are only preferred. */
export class RequiredPodAffinity {
  readonly #pod: KubePod;
  readonly #namespaceLabels: (name: string) => Readonly<Record<string, string>>;
  readonly #near: readonly PodAffinityTerm[];
  readonly #apart: readonly PodAffinityTerm[];
  /** Topologies, as `key=value`, with a pod that every term of the pod's own affinity selects. */
  readonly #selectedIn = new Set<string>();
  /** Topologies with a pod that the pod's anti-affinity excludes. */
  readonly #excludedIn = new Set<string>();
  /** Topologies of pods whose anti-affinity excludes this pod. */
  readonly #unwelcomeIn = new Set<string>();

  /** @param placed the other pods that count */
  constructor(
    pod: KubePod,
    placed: readonly PlacedPod[],
    namespaceLabels: (name: string) => Readonly<Record<string, string>>,
  ) {
    this.#pod = pod;
    this.#namespaceLabels = namespaceLabels;
    this.#near = requiredTerms(pod, 'podAffinity');
    this.#apart = requiredTerms(pod, 'podAntiAffinity');
    for (const other of placed) this.#count(other);
  }

  /** Why the node does not fit. `unresolvable`: evicting pods would not help. */
  misfit({ metadata: { labels = {} } }: KubeNode) {
    const isIn = (topologies: ReadonlySet<string>) =>
      Object.entries(labels).some(([key, value]) => topologies.has(`${key}=${value}`));
    if (!this.#isNear(labels)) return { reasons: ["node(s) didn't match pod affinity rules"], unresolvable: true };
    const resolvable = (reason: string) => ({ reasons: [reason], unresolvable: false });
    if (isIn(this.#excludedIn)) return resolvable("node(s) didn't match pod anti-affinity rules");
    if (isIn(this.#unwelcomeIn)) return resolvable("node(s) didn't satisfy existing pods anti-affinity rules");
    return undefined;
  }

  /** The first pod of a group that is to run together may run on any node with the topology. */
  #isNear(labels: Readonly<Record<string, string>>): boolean {
    if (this.#near.some(({ topologyKey }) => labels[topologyKey] === undefined)) return false;
    const isSelected = ({ topologyKey }: PodAffinityTerm) =>
      this.#selectedIn.has(`${topologyKey}=${labels[topologyKey]}`);
    if (this.#near.every(isSelected)) return true;
    return this.#selectedIn.size === 0 && this.#near.every((term) => this.#selects(this.#pod, term, this.#pod));
  }

  #count({ pod: other, node }: PlacedPod): void {
    const add = (to: Set<string>, { topologyKey }: PodAffinityTerm) => {
      const value = node.metadata.labels?.[topologyKey];
      if (value !== undefined) to.add(`${topologyKey}=${value}`);
    };
    if (this.#near.length > 0 && this.#near.every((term) => this.#selects(this.#pod, term, other))) {
      for (const term of this.#near) add(this.#selectedIn, term);
    }
    for (const term of this.#apart) if (this.#selects(this.#pod, term, other)) add(this.#excludedIn, term);
    for (const term of requiredTerms(other, 'podAntiAffinity')) {
      if (this.#selects(other, term, this.#pod)) add(this.#unwelcomeIn, term);
    }
  }

  #selects(owner: KubePod, term: PodAffinityTerm, { metadata }: KubePod): boolean {
    if (term.labelSelector === undefined || !this.#isInNamespace(owner, term, metadata.namespace ?? '')) return false;
    const { labels = {} } = metadata;
    const ownerLabels = owner.metadata.labels ?? {};
    // The API server turns these keys into requirements with the values of the owner's labels.
    const isSame = (key: string) => labels[key] === ownerLabels[key];
    const matched = (term.matchLabelKeys ?? []).filter((key) => ownerLabels[key] !== undefined);
    const mismatched = (term.mismatchLabelKeys ?? []).filter((key) => ownerLabels[key] !== undefined);
    return labelSelectorObject(term.labelSelector)(labels) && matched.every(isSame) && !mismatched.some(isSame);
  }

  #isInNamespace(owner: KubePod, { namespaces = [], namespaceSelector }: PodAffinityTerm, name: string): boolean {
    if (namespaceSelector === undefined && namespaces.length === 0) return owner.metadata.namespace === name;
    if (namespaces.includes(name)) return true;
    return namespaceSelector !== undefined && labelSelectorObject(namespaceSelector)(this.#namespaceLabels(name));
  }
}

function requiredTerms({ spec }: KubePod, kind: 'podAffinity' | 'podAntiAffinity'): readonly PodAffinityTerm[] {
  return spec.affinity?.[kind]?.requiredDuringSchedulingIgnoredDuringExecution ?? [];
}
