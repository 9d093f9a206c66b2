/** Labels for the location of a machine (topology.kubernetes.io/zone, …/region and any that an administrator adds). */
export const DOMAIN_LABELS = 'topology.kubernetes.io/';
/** Limits: keys, and characters of one node's labels. */
const MOST_KEYS = 8;
const LONGEST = 1024;

/** A node's topology labels as one text, which nodes in the same location share. */
export function domainsText(labels: Readonly<Record<string, string>> | undefined): string {
  const lines: string[] = [];
  for (const key in labels) if (key.startsWith(DOMAIN_LABELS)) lines.push(`${key}=${labels[key]}`);
  const text = lines.sort().join('\n');
  return text.length > LONGEST ? '' : text;
}

/** One topology key: its domains as numbers. */
export interface Domains {
  /** The number of each node's domain by the node's number, or 0 if the node lacks the label. */
  readonly ofNode: Uint32Array;
  /** Number of domains that any node has had. */
  readonly count: number;
}

/** The topology domains of nodes by their number: four bytes for each node and key. */
export class NodeDomains {
  readonly #keys = new Map<string, { ofNode: Uint32Array; readonly values: Map<string, number>; count: number }>();

  /** @param text from `domainsText`; '' for a removed node */
  set(id: number, text: string): void {
    for (const { ofNode } of this.#keys.values()) if (id < ofNode.length) ofNode[id] = 0;
    if (text === '') return;
    for (const line of text.split('\n')) {
      const at = line.indexOf('=');
      this.#put(id, line.slice(0, at), line.slice(at + 1));
    }
  }

  /** Undefined for a key that no node has. */
  of(key: string): Domains | undefined {
    return this.#keys.get(key);
  }

  #put(id: number, key: string, value: string): void {
    let kept = this.#keys.get(key);
    if (kept === undefined) {
      if (this.#keys.size === MOST_KEYS) return;
      kept = { ofNode: new Uint32Array(256), values: new Map(), count: 0 };
      this.#keys.set(key, kept);
    }
    if (id >= kept.ofNode.length) {
      const grown = new Uint32Array(id * 2);
      grown.set(kept.ofNode);
      kept.ofNode = grown;
    }
    let domain = kept.values.get(value);
    if (domain === undefined) {
      domain = ++kept.count;
      kept.values.set(value, domain);
    }
    kept.ofNode[id] = domain;
  }
}
