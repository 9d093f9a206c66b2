/** Labels for the location of a machine (topology.kubernetes.io/zone, …/region and any that an administrator adds). */
export const DOMAIN_LABELS = 'topology.kubernetes.io/';
/** Maximum characters of one node's topology labels. */
const MAX_CHARACTERS = 1024;

/** The values of a node's topology labels, by key. */
export type TopologyDomains = ReadonlyMap<string, string>;

export const NO_DOMAINS: TopologyDomains = new Map();

/** The topology labels among a node's labels; none if they are too long to keep. */
export function domainsOf(labels: Readonly<Record<string, string>> = {}): TopologyDomains {
  const domains = Object.entries(labels).filter(([key]) => key.startsWith(DOMAIN_LABELS));
  if (domains.length === 0 || domains.flat().join(' ').length > MAX_CHARACTERS) return NO_DOMAINS;
  return new Map(domains);
}

export function areSameDomains(a: TopologyDomains, b: TopologyDomains): boolean {
  return a.size === b.size && [...a].every(([key, value]) => b.get(key) === value);
}
