/** Who wrote which fields of an object, as the API server records it. */
export interface ManagedFields {
  readonly manager?: string | undefined;
  readonly fieldsV1?: unknown;
}

/** One look at a lease. */
export interface WriterSample {
  readonly renewTime: string | undefined;
  readonly managedFields: readonly ManagedFields[];
}

/** The manager that wrote renewTime last; undefined if the API server has not recorded it. */
export function renewalWriter({ managedFields }: WriterSample): string | undefined {
  return managedFields.find(({ fieldsV1 }) => hasPath(fieldsV1, ['f:spec', 'f:renewTime']))?.manager;
}

/**
 * Everybody who has renewed a lease in a series of looks at it. Two of them mean that two agents, or an agent next to
 * OVN-Kubernetes, keep one lease: then a DPU that dies may be hidden by the other's renewals.
 */
export function renewalWriters(samples: readonly WriterSample[]): string[] {
  const writers = samples.map(renewalWriter).filter((writer) => writer !== undefined);
  return [...new Set(writers)].sort();
}

function hasPath(value: unknown, path: readonly string[]): boolean {
  if (path.length === 0) return true;
  if (typeof value !== 'object' || value === null) return false;
  const [first = '', ...rest] = path;
  return first in value && hasPath((value as Record<string, unknown>)[first], rest);
}
