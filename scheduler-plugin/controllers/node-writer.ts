import { isNotFound, type KubeClient } from '../../kube/client.ts';
import {
  DPU_READY_CONDITION,
  FULL_PCPUS_LABEL,
  RECHECK_ANNOTATION,
  SERVICE,
  THREADS_PER_CORE_LABEL,
} from '../../model/names.ts';
import type { Logger } from '../../runtime/log.ts';
import type { WrittenFacts } from '../cluster/cluster.ts';
import type { DpuHealth } from '../cluster/dpu-health.ts';
import type { Fleet } from '../cluster/fleet.ts';

export interface NodeWriterOptions {
  readonly client: KubeClient;
  readonly fleet: Fleet;
  readonly nodes: ReadonlyMap<string, WrittenFacts>;
  readonly dpuHealth: Pick<DpuHealth, 'verdict' | 'released'>;
  readonly active: () => boolean;
  readonly log: Logger;
}

const FIELD_MANAGER = SERVICE;
const MERGE = 'application/merge-patch+json';
const APPLY = 'application/apply-patch+yaml';
const STRATEGIC = 'application/strategic-merge-patch+json';
/** Removes the condition of a node whose DPU is no longer watched. */
const WITHOUT_CONDITION = { status: { conditions: [{ type: DPU_READY_CONDITION, $patch: 'delete' }] } };
/** Milliseconds between two nodes, and after a failure. */
const PACE = 20;
const PAUSE = 5000;

/**
 * Writes facts from the reports on Node objects: labels that the webhook uses to narrow nodes, the DPUReady condition,
 * and the recheck annotation. Agents have no verb on nodes, so only the active replica of the extender writes.
 */
export function createNodeWriter({ client, fleet, nodes, dpuHealth, active, log }: NodeWriterOptions) {
  const queue = new Set<string>();
  let timer: NodeJS.Timeout | undefined;
  let busy = false;

  const wantedLabels = (name: string, { threadsPerCore, fullPcpus }: WrittenFacts) => {
    const node = fleet.get(name);
    if (node?.shape === undefined || node.quarantined) return undefined;
    const { shape } = node;
    const threads = String(shape.empty.host.threadsPerCore);
    const full = String(shape.empty.wholeCoresOnly);
    if (threads === threadsPerCore && full === fullPcpus) return undefined;
    return { [THREADS_PER_CORE_LABEL]: threads, [FULL_PCPUS_LABEL]: full };
  };

  const wantedCondition = (node: string, { dpuHost, dpuReady }: WrittenFacts) => {
    if (!dpuHost || dpuHealth.released(node)) return undefined;
    const { state, age } = dpuHealth.verdict(node);
    // A replica that has just started has observed less than the last one, which wrote the condition.
    if (state === 'unproven' && dpuReady !== undefined) return undefined;
    const status = state === 'alive' ? 'True' : state === 'dead' ? 'False' : 'Unknown';
    if (status === dpuReady) return undefined;
    const time = `${new Date().toISOString().slice(0, 19)}Z`;
    const seen = age === undefined ? 'its lease was never renewed' : `last renewal ${Math.round(age)} s ago`;
    return {
      type: DPU_READY_CONDITION,
      status,
      reason: { alive: 'LeaseRenewed', dead: 'LeaseExpired', unproven: 'NotSeenAlive', unknown: 'LeaseUnknown' }[state],
      message: `the DPU is ${state}: ${seen}`,
      lastHeartbeatTime: time,
      lastTransitionTime: time,
    };
  };

  const write = async (node: string): Promise<void> => {
    const facts = nodes.get(node);
    if (facts === undefined) return;
    const path = `/api/v1/nodes/${node}`;
    const labels = wantedLabels(node, facts);
    if (labels) await client.patch(path, MERGE, { metadata: { labels } });
    if (facts.dpuReady !== undefined && (!facts.dpuHost || dpuHealth.released(node))) {
      await client.patch(`${path}/status`, STRATEGIC, WITHOUT_CONDITION);
      return;
    }
    const condition = wantedCondition(node, facts);
    if (!condition) return;
    // Use apply: a merge patch would replace the kubelet's conditions.
    const body = { apiVersion: 'v1', kind: 'Node', metadata: { name: node }, status: { conditions: [condition] } };
    await client.patch(`${path}/status`, APPLY, body, { query: { fieldManager: FIELD_MANAGER, force: true } });
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
    } catch (err) {
      if (!isNotFound(err)) {
        log.warn({ err, node }, 'patching node labels or condition failed; retrying');
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
        log.info({ node }, 'requested a scheduling retry for a node');
        return true;
      } catch (err) {
        if (isNotFound(err)) return true;
        log.warn({ err, node }, 'patching the recheck annotation failed; retrying');
        return false;
      }
    },
    stop() {
      queue.clear();
    },
  };
}
