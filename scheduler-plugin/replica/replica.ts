/**
 * Whether this process decides. Several replicas watch the cluster; one answers kube-scheduler and writes to the cluster.
 * - `elected.ts`: replicas behind a Service elect one of themselves.
 * - `scheduler-lease.ts`: each replica runs in the pod of a kube-scheduler; kube-scheduler's own election decides.
 */
export interface Replica {
  /** Never rejects. */
  run(signal: AbortSignal): Promise<void>;
  /** Whether this replica may write to the cluster at this moment. */
  isActive(): boolean;
  /** Whether this replica may give verdicts at this moment. Asked before and after each one. */
  mayAnswer(): boolean;
  /** A call of kube-scheduler has arrived. Resolves when `mayAnswer` is up to date. */
  called(): Promise<void>;
  /** Whether the active replica is known. */
  readonly settled: boolean;
  /** Takes no more calls by way of the Service, and lets another replica decide. */
  release(): Promise<void>;
}
