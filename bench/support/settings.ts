import type { BenchResult } from './timing.ts';

/** Options of the long measurements. */
export interface BenchSettings {
  /** For the real kube-scheduler: number of nodes, of waiting pods for each start, and of turns. */
  readonly nodes: number;
  readonly pods: number;
  readonly rounds: number;
  /** Seconds for which the system calls of an idle agent are counted. */
  readonly idle: number;
  /** Whether to run a measurement, by name; for those that take minutes each. */
  readonly asked: (name: string) => boolean;
}

/** The options for the figures in docs/maintainers/benchmarks.md. */
export const DEFAULTS = { nodes: 5000, pods: 1000, rounds: 5, idle: 30 } as const;

export type Bench = (settings: BenchSettings) => BenchResult | BenchResult[] | Promise<BenchResult | BenchResult[]>;

/** Measurements that run together. */
export interface BenchGroup {
  /** Prefixes of the names of its results. */
  readonly names: readonly string[];
  /** Imports the measurements in the process of this group: importing all groups takes seconds. */
  readonly load: () => Promise<readonly Bench[]>;
  /** Only runs if a prefix selects it. */
  readonly onRequest?: true;
  /** Minutes after which a measurement counts as hung. Default 5, and 90 on request. */
  readonly minutes?: number;
  /**
   * Why a quick run may measure it at the same time as other groups: it waits most of the time for an idle process, or
   * it counts the processor time or the memory of its own processes.
   */
  readonly alongside?: 'waits' | 'counts';
}
