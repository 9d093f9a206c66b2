import type { KubeClient } from '../../kube/client.ts';
import { monotonicSeconds } from '../../runtime/time.ts';
import type { KubeletRun } from '../host/kubelet-runs.ts';
import { type NodeIdentity, readNode } from '../kube-objects/lease.ts';

/** Seconds between reads of a Node that does not have what its kubelet will write: the kubelet writes it every 10 s. */
const RETRY_SECONDS = 3;
/** Seconds between reads until the heartbeat has changed once, or MAX_WAIT_SECONDS have passed. */
const CONFIRM_SECONDS = 10;
/** Seconds after which a heartbeat that does not change counts for the run: a clock that was set back hides its age. */
const MAX_WAIT_SECONDS = 60;

/**
 * The Node, which contains the kubelet's version and its numbers of devices. Owner: the kubelet, which writes its status
 * when it starts and then at least every five minutes. Age: the last read; a version that an earlier run wrote is not
 * passed on. End: the next read, or a new run of the kubelet.
 */
export class NodeReader {
  readonly #client: KubeClient;
  readonly #name: string;
  #node: NodeIdentity | undefined;
  #run: { readonly id: string; readonly observedAt: number; firstHeartbeat?: string | undefined } | undefined;
  /** `earlier run`: the Node's status may be what another run of the kubelet wrote. */
  #status: 'earlier run' | 'this run' = 'earlier run';
  #dueAt = Number.NEGATIVE_INFINITY;

  constructor(client: KubeClient, name: string) {
    this.#client = client;
    this.#name = name;
  }

  /** When the Node must be read again, in monotonic seconds; infinite if it has everything. */
  get dueAt(): number {
    return this.#dueAt;
  }

  /** Reads it again soon. */
  readSoon(): void {
    this.#dueAt = Math.min(this.#dueAt, monotonicSeconds() + RETRY_SECONDS);
  }

  /** Without the version while that is of an earlier run. @param again whether to read in any case @throws KubeError */
  async read(run: KubeletRun, again: boolean, signal: AbortSignal): Promise<NodeIdentity> {
    const now = monotonicSeconds();
    if (run.id !== this.#run?.id) {
      this.#run = { id: run.id, observedAt: now };
      this.#status = 'earlier run';
      this.#dueAt = now;
    }
    if (this.#node === undefined || again || now >= this.#dueAt) {
      this.#node = await readNode(this.#client, this.#name, signal);
      this.#status = this.#isOf(run, this.#node) ? 'this run' : 'earlier run';
      this.#dueAt = this.#status === 'this run' ? this.#confirmAt(now) : now + RETRY_SECONDS;
    }
    return this.#status === 'this run' ? this.#node : { ...this.#node, kubeletVersion: undefined };
  }

  /** A heartbeat that looks like the run's may be an earlier one's, written before the clock was set back. */
  #confirmAt(now: number): number {
    const { firstHeartbeat, observedAt = now } = this.#run ?? {};
    const isConfirmed = this.#node?.heartbeat !== firstHeartbeat || now - observedAt > MAX_WAIT_SECONDS;
    return isConfirmed ? Number.POSITIVE_INFINITY : now + CONFIRM_SECONDS;
  }

  #isOf({ startedAt }: KubeletRun, { heartbeat }: NodeIdentity): boolean {
    if (this.#status === 'this run' || heartbeat === undefined || this.#run === undefined) return true;
    const { firstHeartbeat = heartbeat, observedAt } = this.#run;
    this.#run.firstHeartbeat = firstHeartbeat;
    // Only the kubelet writes it, and the earlier one has ended.
    if (heartbeat !== firstHeartbeat) return true;
    if (startedAt !== undefined && Date.parse(heartbeat) >= startedAt) return true;
    return monotonicSeconds() - observedAt > MAX_WAIT_SECONDS;
  }
}
