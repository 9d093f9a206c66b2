/**
 * Severity of a finding: an `error` refuses its subject, a `warning` is about a deviation from the owner's request, and
 * `information` needs no correction. The code that creates a finding sets it; nothing derives it from the finding's
 * code.
 */
export type Severity = 'error' | 'warning' | 'information';

/** Information for the owner of a VM or pod. */
export interface Finding {
  readonly severity: Severity;
  /** Stable, with low cardinality. */
  readonly code: string;
  /** One or two sentences. */
  readonly message: string;
  /** CamelCase: the reason of its Event, if it differs from the default of its severity. */
  readonly reason?: string;
}
