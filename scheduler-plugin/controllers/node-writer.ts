import { isNotFound, type KubeClient, KubeError } from '../../kube/client.ts';
import { AGENT_LEASE_PREFIX } from '../../model/lease/agent-health.ts';
import {
  AGENT_READY_CONDITION,
  DPU_READY_CONDITION,
  FULL_PCPUS_LABEL,
  RECHECK_ANNOTATION,
  SERVICE,
  THREADS_PER_CORE_LABEL,
} from '../../model/names.ts';
import type { WrittenFacts } from '../cluster/cluster.ts';
import type { DpuHealth } from '../cluster/dpu-health.ts';
import type { ClusterNode, Fleet } from '../cluster/fleet.ts';
import type { ExtenderLogger } from '../telemetry/log-messages.ts';

export interface NodeWriterOptions {
  readonly client: KubeClient;
  readonly fleet: Fleet;
  readonly nodes: ReadonlyMap<string, WrittenFacts>;
  readonly dpuHealth: Pick<DpuHealth, 'verdict' | 'released'>;
  readonly active: () => boolean;
  /** Called when the condition AgentReady was written that a silent agent has, or one that reports again. */
  readonly announce: (node: string, isReady: boolean) => void;
  readonly log: ExtenderLogger;
}

const MERGE = 'application/merge-patch+json';
const STRATEGIC = 'application/strategic-merge-patch+json';
/** Milliseconds between two nodes, and after a failure. */
const PACE = 20;
const PAUSE = 5000;

/**
 * Writes facts on Node objects: labels that the webhook uses to narrow nodes, the conditions DPUReady and AgentReady, and
 * the recheck annotation. Agents have no verb on nodes, so only the active replica of the extender writes.
 */
export function createNodeWriter({ client, fleet, nodes, dpuHealth, active, announce, log }: NodeWriterOptions) {
  const queue = new Set<string>();
  let timer: NodeJS.Timeout | undefined;
  let busy = false;
  let lastProblem = '';
  /** The status of AgentReady as last written, by node, until the watch shows it. */
  const written = new Map<string, string>();

  const dpuCondition = (node: string, { dpuHost, dpuReady }: WrittenFacts) => {
    if (!dpuHost || dpuHealth.released(node))
      return dpuReady === undefined ? undefined : { type: DPU_READY_CONDITION, $patch: 'delete' };
    const { state, age } = dpuHealth.verdict(node);
    // A replica that has just started has observed less than the last one, which wrote the condition.
    if (state === 'unproven' && dpuReady !== undefined) return undefined;
    const status = state === 'alive' ? 'True' : state === 'dead' ? 'False' : 'Unknown';
    if (status === dpuReady) return undefined;
    const seen = age === undefined ? 'its lease was never renewed' : `last renewal ${Math.round(age)} s ago`;
    return {
      ...conditionOf(DPU_READY_CONDITION, status),
      reason: { alive: 'LeaseRenewed', dead: 'LeaseExpired', unproven: 'NotSeenAlive', unknown: 'LeaseUnknown' }[state],
      message: `the DPU is ${state}: ${seen}`,
    };
  };

  const agentCondition = (name: string, { agentReady }: WrittenFacts) => {
    if (agentReady === written.get(name)) written.delete(name);
    const node = fleet.get(name);
    // A replica that has just started has observed no renewal yet.
    if (node === undefined || !(node.stale || node.agentRenewed)) return undefined;
    const status = node.stale ? 'False' : 'True';
    if (status === (written.get(name) ?? agentReady)) return undefined;
    const lease = `the Lease ${AGENT_LEASE_PREFIX}${name}`;
    const message = node.stale ? `the agent has not renewed ${lease} in time` : `the agent renews ${lease}`;
    const reason = node.stale ? 'LeaseExpired' : 'LeaseRenewed';
    return { ...conditionOf(AGENT_READY_CONDITION, status), reason, message };
  };

  const write = async (node: string): Promise<void> => {
    const facts = nodes.get(node);
    if (facts === undefined) {
      written.delete(node);
      return;
    }
    const path = `/api/v1/nodes/${node}`;
    const labels = wantedLabels(fleet.get(node), facts);
    if (labels) await client.patch(path, MERGE, { metadata: { labels } });
    const agent = agentCondition(node, facts);
    const conditions = [dpuCondition(node, facts), agent].filter((condition) => condition !== undefined);
    if (conditions.length === 0) return;
    // A merge patch would replace the kubelet's conditions.
    await client.patch(`${path}/status`, STRATEGIC, { status: { conditions } }, { query: { fieldManager: SERVICE } });
    if (agent === undefined) return;
    const wasSilent = (written.get(node) ?? facts.agentReady) === 'False';
    written.set(node, agent.status);
    if (agent.status === 'False' || wasSilent) announce(node, agent.status === 'True');
  };

  /** Logs a failure that many nodes have in common once, until a write succeeds. */
  const logFailure = (err: unknown, node: string): void => {
    const problem = err instanceof KubeError ? `${err.status} ${err.reason}` : String(err);
    if (problem !== lastProblem) log.warn({ err, node }, 'patching a Node failed; retrying');
    lastProblem = problem;
  };

  const next = async (): Promise<void> => {
    timer = undefined;
    const [node] = queue;
    if (node === undefined || !active()) return;
    queue.delete(node);
    busy = true;
    let wait = PACE;
    try {
      await write(node);
      lastProblem = '';
    } catch (err) {
      if (!isNotFound(err)) {
        logFailure(err, node);
        queue.add(node);
        wait = PAUSE;
      }
    }
    busy = false;
    schedule(wait);
  };

  function schedule(wait = PACE): void {
    if (timer !== undefined || busy || queue.size === 0 || !active()) return;
    timer = setTimeout(() => void next(), wait).unref();
  }

  const look = (node: string) => {
    queue.add(node);
    schedule();
  };
  return {
    /** The wanted facts of the node may have changed. */
    look,
    /** Checks every node, when this replica has become the active one. */
    lookAtAll() {
      for (const node of nodes.keys()) look(node);
    },
    /** Changes the recheck annotation. Never throws. @returns whether it was changed or the node no longer exists */
    async touch(node: string): Promise<boolean> {
      const body = { metadata: { annotations: { [RECHECK_ANNOTATION]: new Date().toISOString() } } };
      try {
        await client.patch(`/api/v1/nodes/${node}`, MERGE, body);
        log.debug({ node }, 'requested a scheduling retry for a node');
        return true;
      } catch (err) {
        if (isNotFound(err)) return true;
        logFailure(err, node);
        return false;
      }
    },
    stop() {
      queue.clear();
    },
  };
}

/** The labels from the node's report, unless the Node has them. */
function wantedLabels(node: ClusterNode | undefined, { threadsPerCore, fullPcpus }: WrittenFacts) {
  if (node?.shape === undefined || node.quarantined) return undefined;
  const { host, wholeCoresOnly } = node.shape.empty;
  const threads = String(host.threadsPerCore);
  const full = String(wholeCoresOnly);
  if (threads === threadsPerCore && full === fullPcpus) return undefined;
  return { [THREADS_PER_CORE_LABEL]: threads, [FULL_PCPUS_LABEL]: full };
}

function conditionOf(type: string, status: 'True' | 'False' | 'Unknown') {
  const time = `${new Date().toISOString().slice(0, 19)}Z`;
  return { type, status, lastHeartbeatTime: time, lastTransitionTime: time };
}
