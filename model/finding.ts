/**
 * How much a finding matters: an `error` refuses what it is about, a `warning` is not as its owner asked, and of
 * `information` nothing needs to be mended. Set where the finding is made; nothing derives it from the code.
 */
export type Severity = 'error' | 'warning' | 'information';

/** Something the owner of a VM or pod should hear about it. */
export interface Finding {
  readonly severity: Severity;
  /** Stable and of low cardinality. */
  readonly code: string;
  /** One sentence or two. */
  readonly message: string;
  /** CamelCase: the reason of its Event, where that is not the usual one of its severity. */
  readonly reason?: string;
}
