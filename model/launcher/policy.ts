/**
 * Which launchers are aligned. `annotated`: those that opt in, to at least an even number. `always`: all, to the same.
 * `auto`: all, to the threads per core of the candidate nodes, so that no CPU is wasted without SMT.
 */
export const ALIGNMENT_POLICIES = ['annotated', 'always', 'auto'] as const;
export type AlignmentPolicy = (typeof ALIGNMENT_POLICIES)[number];

/** The reaction to a VM that is larger than the NUMA nodes of its networks on every node that it can run on. */
export const OVERSIZED_POLICIES = ['refuse', 'warn'] as const;
export type OversizedPolicy = (typeof OVERSIZED_POLICIES)[number];
