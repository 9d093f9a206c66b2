/**
 * Whose launchers are aligned. `annotated`: those that ask for it, to an even number at least. `always`: all, to the
 * same. `auto`: all, to what the candidate nodes are, so nothing is wasted where SMT is off.
 */
export const ALIGNMENT_POLICIES = ['annotated', 'always', 'auto'] as const;
export type AlignmentPolicy = (typeof ALIGNMENT_POLICIES)[number];

/** What happens to a VM that is larger than the NUMA nodes of its networks on every node that it can go to. */
export const OVERSIZED_POLICIES = ['refuse', 'warn'] as const;
export type OversizedPolicy = (typeof OVERSIZED_POLICIES)[number];
