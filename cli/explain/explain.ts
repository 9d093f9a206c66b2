import type { KubeClient } from '../../kube/client.ts';
import { isNotFound } from '../../kube/errors.ts';
import { type NodeTopology, nodeTopology } from '../../kube/node-topology.ts';
import type { ClusterAccess } from '../support/cluster.ts';
import { NODE_TOPOLOGIES_PATH, readOne } from '../support/lists.ts';
import type { ExtenderChoice } from './ask-extender.ts';
import { asksOf, bypassesOf } from './asks.ts';
import type { Explanation, Finding } from './explanation.ts';
import { type ExplainedPod, explainedNode, timeOf } from './objects.ts';
import { pausedVm } from './paused.ts';
import { runningPod } from './running.ts';
import { NOT_SEEN, readScheduler, type SchedulerSeen } from './scheduler.ts';
import { beforeScheduling, endedPod, startingPod, withoutPod } from './stages.ts';
import type { Subject } from './subject.ts';
import { unscheduledPod } from './unscheduled.ts';

/** Events shown: what is older than an hour, or the same again, tells nothing of now. */
const EVENTS = 4;
const RECENT = 3600;

/**
 * Says why a VM or pod does not run, or where it does.
 * @param now milliseconds since 1970
 * @throws CliError, KubeError
 */
export async function explain(
  cluster: ClusterAccess,
  subject: Subject,
  choice: ExtenderChoice,
  now: number,
): Promise<Explanation> {
  const { kind, namespace, name, pod } = subject;
  const scheduler = pod === undefined ? NOT_SEEN : await readScheduler(cluster.client, now);
  const finding =
    pod === undefined ? withoutPod(subject, now) : await ofPod(cluster, subject, pod, choice, scheduler, now);
  const bypasses = pod === undefined || finding.stage === 'succeeded' ? [] : bypassesOf(pod, scheduler.leads);
  const { help = [], causes = [], nodes = [], notes = [] } = finding;
  return {
    kind,
    namespace,
    name,
    stage: finding.stage,
    why: finding.why,
    pod: pod?.metadata.name,
    node: pod?.spec.nodeName,
    asks: pod === undefined ? [] : asksOf(pod),
    help: [...new Set([...bypasses.map((one) => one.help), ...help])],
    causes: [...bypasses.map(({ cause }) => cause), ...causes],
    scheduler: finding.scheduler,
    source: finding.source,
    nodes,
    notes,
    events: recentEvents(subject, now),
  };
}

async function ofPod(
  cluster: ClusterAccess,
  { vmi, events }: Subject,
  pod: ExplainedPod,
  choice: ExtenderChoice,
  scheduler: SchedulerSeen,
  now: number,
): Promise<Finding> {
  const { client } = cluster;
  const { phase = 'Pending' } = pod.status ?? {};
  const node = pod.spec.nodeName ?? '';
  if (phase === 'Failed' || phase === 'Succeeded') return endedPod(pod, events);
  if (pod.metadata.deletionTimestamp !== undefined) {
    return { stage: 'deleting', why: `it is being deleted${node === '' ? '' : ` on ${node}`}` };
  }
  if (node === '') return beforeScheduling(pod) ?? unscheduledPod(cluster, pod, choice, scheduler, now);
  if (phase === 'Running') {
    const topology = await topologyOf(client, node);
    return pausedVm(vmi, pod, topology) ?? runningPod(pod, topology);
  }
  const path = `/api/v1/nodes/${encodeURIComponent(node)}`;
  return startingPod(pod, await readOne(client, path, explainedNode).catch(() => undefined), events);
}

/** Undefined where the node, or the whole cluster, does not report. */
async function topologyOf(client: KubeClient, node: string): Promise<NodeTopology | undefined> {
  try {
    return await readOne(client, `${NODE_TOPOLOGIES_PATH}/${encodeURIComponent(node)}`, nodeTopology);
  } catch (error) {
    if (isNotFound(error)) return undefined;
    throw error;
  }
}

function recentEvents({ events }: Subject, now: number): Explanation['events'] {
  const seen = new Set<string>();
  const shown: { reason: string; message: string; ago: number }[] = [];
  for (const event of events) {
    const { type, reason, message } = event;
    const ago = Math.max(0, Math.round((now - timeOf(event)) / 1000));
    // What kube-scheduler says stands above already.
    const told = reason === 'FailedScheduling' || reason === 'Scheduled' || seen.has(`${reason} ${message}`);
    if (told || ago > RECENT || (type !== 'Warning' && shown.length > 1)) continue;
    seen.add(`${reason} ${message}`);
    shown.push({ reason: reason ?? '', message: message ?? '', ago });
    if (shown.length === EVENTS) break;
  }
  return shown;
}
