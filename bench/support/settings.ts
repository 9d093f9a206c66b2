import type { BenchResult } from './timing.ts';

/** What a caller may choose of the measurements that take long. */
export interface BenchSettings {
  /** On the real kube-scheduler: nodes of the cluster, pods that wait for each start of it, and such turns. */
  readonly nodes: number;
  readonly pods: number;
  readonly rounds: number;
  /** Seconds for which the system calls of an agent at rest are counted. */
  readonly idle: number;
  /** Whether a measurement is wanted, by its name; for those that take minutes each. */
  readonly asked: (name: string) => boolean;
}

/** What the figures of docs/maintainers/benchmarks.md were measured with. */
export const DEFAULTS = { nodes: 5000, pods: 1000, rounds: 5, idle: 30 } as const;

type Bench = (settings: BenchSettings) => BenchResult | BenchResult[] | Promise<BenchResult | BenchResult[]>;

/** Measurements that are made together. */
export interface BenchGroup {
  /** What the names of its results begin with. */
  readonly names: readonly string[];
  readonly benches: readonly Bench[];
  /** Only when a prefix asks for it. */
  readonly onRequest?: true;
}
