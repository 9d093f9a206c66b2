import { isNotFound, KubeError } from '../../kube/client.ts';
import type { LeaseState } from '../../model/lease/observer.ts';
import { formatTime } from '../../model/lease/timing.ts';
import {
  AGENT_LEASE_PREFIX,
  AGENT_READY_CONDITION,
  DPU_READY_CONDITION,
  DPU_RESTARTED_CONDITION,
  FULL_PCPUS_LABEL,
  RECHECK_ANNOTATION,
  SERVICE,
  THREADS_PER_CORE_LABEL,
} from '../../model/names.ts';
import { logFailure } from '../../runtime/log.ts';
import { ProblemLog } from '../../runtime/problem-log.ts';
import { WorkQueue, type WorkResult } from '../../runtime/work-queue.ts';
import type { WrittenFacts } from '../cluster/cluster.ts';
import { type DpuMonitor, lastRenewalText } from '../cluster/dpu-health.ts';
import type { ClusterNode, Fleet } from '../cluster/fleet.ts';
import type { ExtenderContext } from '../telemetry/context.ts';
import type { ExtenderMessages } from '../telemetry/log-messages.ts';
import type { DpuRestarts } from './dpu-restarts.ts';

interface NodeWriterOptions extends Pick<ExtenderContext, 'client' | 'active' | 'log'> {
  readonly fleet: Fleet;
  readonly nodes: ReadonlyMap<string, WrittenFacts>;
  readonly dpuHealth: Pick<DpuMonitor, 'verdict' | 'isReleased'>;
  readonly restarts: Pick<DpuRestarts, 'conditionOf'>;
  /** Called when the condition AgentReady was written that a silent agent has, or one that reports again. */
  readonly announce: (node: string, isReady: boolean) => void;
}

const MERGE = 'application/merge-patch+json';
const STRATEGIC = 'application/strategic-merge-patch+json';
/** Milliseconds between two nodes. */
const WRITE_INTERVAL_MILLISECONDS = 20;
/** The status and the reason of the condition DPUReady. */
const DPU_CONDITIONS: Readonly<Record<LeaseState, readonly [status: string, reason: string]>> = {
  alive: ['True', 'LeaseRenewed'],
  dead: ['False', 'LeaseExpired'],
  unproven: ['Unknown', 'NotSeenAlive'],
  unknown: ['Unknown', 'LeaseUnknown'],
};

/** Labels for the webhook, conditions, and the recheck annotation. Agents have no verb on nodes. */
export class NodeWriter {
  readonly #options: NodeWriterOptions;
  readonly #problems: ProblemLog<ExtenderMessages>;
  /** Names of Nodes. One that refuses a patch does not delay the others. */
  readonly #queue: WorkQueue<string>;
  /** The status that was written and the one before it, by node, until the watch shows any other than that one. */
  readonly #written = new Map<string, { readonly status: string; readonly before: string | undefined }>();
  /** Whether a Node was skipped: a replica whose Lease is renewed late is active again without a change of the leader. */
  #hasSkipped = false;

  constructor(options: NodeWriterOptions) {
    this.#options = options;
    this.#problems = new ProblemLog(options.log);
    this.#queue = new WorkQueue({
      work: (node) => this.#tryReconcile(node),
      maxConcurrent: 1,
      pauseMilliseconds: WRITE_INTERVAL_MILLISECONDS,
      onFault: logFailure(options.log),
    });
  }

  requeue(node: string): void {
    this.#queue.add(node, node);
  }

  requeueAll(): void {
    this.#hasSkipped = false;
    for (const node of this.#options.nodes.keys()) this.requeue(node);
  }

  /** Changes the recheck annotation. Never throws. @returns whether it was changed or the node no longer exists */
  async touch(node: string): Promise<boolean> {
    const { client, log } = this.#options;
    const body = { metadata: { annotations: { [RECHECK_ANNOTATION]: new Date().toISOString() } } };
    try {
      await client.patch(`/api/v1/nodes/${node}`, MERGE, body);
      log.debug({ node }, 'requested a scheduling retry for a node');
      return true;
    } catch (err) {
      if (isNotFound(err)) return true;
      this.#logFailure(err, node);
      return false;
    }
  }

  stop(): void {
    void this.#queue.stop();
  }

  async #tryReconcile(node: string): Promise<WorkResult> {
    if (!this.#options.active()) {
      this.#hasSkipped = true;
      return 'nothing';
    }
    if (this.#hasSkipped) this.requeueAll();
    try {
      await this.#reconcile(node);
      this.#problems.recovered();
    } catch (err) {
      if (isNotFound(err)) return 'done';
      this.#logFailure(err, node);
      return 'retry';
    }
    return 'done';
  }

  async #reconcile(node: string): Promise<void> {
    const { client, fleet, nodes, announce } = this.#options;
    const facts = nodes.get(node);
    if (facts === undefined) return void this.#written.delete(node);
    const path = `/api/v1/nodes/${node}`;
    const labels = missingLabels(fleet.get(node), facts);
    if (labels) await client.patch(path, MERGE, { metadata: { labels } });
    const agent = this.#agentCondition(node, facts);
    const all = [this.#dpuCondition(node, facts), this.#restartCondition(node, facts), agent];
    const conditions = all.filter((condition) => condition !== undefined);
    if (conditions.length === 0) return;
    // A merge patch would replace the kubelet's conditions.
    await client.patch(`${path}/status`, STRATEGIC, { status: { conditions } }, { query: { fieldManager: SERVICE } });
    if (agent === undefined) return;
    const wasSilent = (this.#written.get(node)?.status ?? facts.agentReady) === 'False';
    this.#written.set(node, { status: agent.status, before: facts.agentReady });
    if (agent.status === 'False' || wasSilent) announce(node, agent.status === 'True');
  }

  #dpuCondition(node: string, { dpuHost, dpuReady }: WrittenFacts) {
    const { dpuHealth } = this.#options;
    if (!dpuHost || dpuHealth.isReleased(node))
      return dpuReady === undefined ? undefined : { type: DPU_READY_CONDITION, $patch: 'delete' };
    const { state, age } = dpuHealth.verdict(node);
    // A replica that has just started has observed less than the last one, which wrote the condition.
    if (state === 'unproven' && dpuReady !== undefined) return undefined;
    const [status, reason] = DPU_CONDITIONS[state];
    const message = `the DPU is ${state}: ${lastRenewalText(age)}`;
    return status === dpuReady ? undefined : { ...conditionOf(DPU_READY_CONDITION, status), reason, message };
  }

  #restartCondition(node: string, { dpuRestarted }: WrittenFacts) {
    const restart = this.#options.restarts.conditionOf(node);
    if (restart === null)
      return dpuRestarted === undefined ? undefined : { type: DPU_RESTARTED_CONDITION, $patch: 'delete' };
    if (restart === undefined || dpuRestarted === restart.at) return undefined;
    const { at, reason, message } = restart;
    return { ...conditionOf(DPU_RESTARTED_CONDITION, 'True'), lastTransitionTime: at, reason, message };
  }

  #agentCondition(name: string, { agentReady }: WrittenFacts) {
    // The watch shows the write, or that of another writer.
    if (agentReady !== this.#written.get(name)?.before) this.#written.delete(name);
    const node = this.#options.fleet.get(name);
    // A replica that has just started has observed no renewal yet.
    if (node === undefined || !(node.stale || node.agentRenewed)) return undefined;
    const status = node.stale ? 'False' : 'True';
    if (status === (this.#written.get(name)?.status ?? agentReady)) return undefined;
    const lease = `the Lease ${AGENT_LEASE_PREFIX}${name}`;
    const message = node.stale ? `the agent has not renewed ${lease} in time` : `the agent renews ${lease}`;
    const reason = node.stale ? 'LeaseExpired' : 'LeaseRenewed';
    return { ...conditionOf(AGENT_READY_CONDITION, status), reason, message };
  }

  #logFailure(err: unknown, node: string): void {
    const problem = err instanceof KubeError ? `${err.status} ${err.reason}` : err;
    this.#problems.failed(problem, 'patching a Node failed; retrying', { err, node });
  }
}

function missingLabels(node: ClusterNode | undefined, { threadsPerCore, fullPcpus }: WrittenFacts) {
  if (node?.shape === undefined || node.quarantined) return undefined;
  const { host, wholeCoresOnly } = node.shape.empty;
  const labels = { [THREADS_PER_CORE_LABEL]: `${host.threadsPerCore}`, [FULL_PCPUS_LABEL]: `${wholeCoresOnly}` };
  const isWritten = `${host.threadsPerCore}` === threadsPerCore && `${wholeCoresOnly}` === fullPcpus;
  return isWritten ? undefined : labels;
}

function conditionOf(type: string, status: string) {
  const time = formatTime(Date.now());
  return { type, status, lastHeartbeatTime: time, lastTransitionTime: time };
}
