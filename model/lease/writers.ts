/** The writers of an object's fields, as recorded by the API server. */
interface ManagedFields {
  readonly manager?: string | undefined;
  readonly fieldsV1?: unknown;
}

/** One reading of a lease. */
export interface WriterSample {
  readonly renewTime: string | undefined;
  readonly managedFields: readonly ManagedFields[];
}

/** The manager that last wrote renewTime; undefined if the API server has not recorded it. */
export function renewalWriter({ managedFields }: WriterSample): string | undefined {
  return managedFields.find(({ fieldsV1 }) => hasPath(fieldsV1, ['f:spec', 'f:renewTime']))?.manager;
}

/**
 * All managers that renewed a lease in a series of readings. Two mean that two agents, or an agent and OVN-Kubernetes,
 * maintain the same lease: renewals by one may then hide that the DPU is dead.
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
