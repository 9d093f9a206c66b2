/**
 * Whether this process is the active replica. Several replicas watch the cluster; one answers kube-scheduler and writes
 * to the cluster.
 * - `elected.ts`: replicas behind a Service elect one of themselves.
 * - `scheduler-lease.ts`: each replica runs in the pod of a kube-scheduler; kube-scheduler's own election decides.
 */
export interface Replica {
  /** Never rejects. */
  run(signal: AbortSignal): Promise<void>;
  /** Whether this replica may write to the cluster at this moment. */
  isActive(): boolean;
  /** Whether this replica may give verdicts at this moment. Call it before and after each one. */
  mayAnswer(): boolean;
  /** Call it when a call of kube-scheduler has arrived. Resolves when `mayAnswer` is up to date. */
  called(): Promise<void>;
  /** Whether the active replica is known. */
  readonly settled: boolean;
  /** Accepts no further calls through the Service, and lets another replica take over. */
  release(): Promise<void>;
}
