import * as z from 'zod';
import { type EventText, nodeTarget } from '../../kube/events.ts';
import { BoundedMap } from '../../model/bounded-map.ts';
import { parseJson } from '../../model/json.ts';
import { isLauncher, recognizeLauncher, vmiObject } from '../../model/launcher/recognize.ts';
import { AGENT_LEASE_PREFIX, DECISION_ANNOTATION } from '../../model/names.ts';
import type { ReportFault } from '../../model/report/check.ts';
import { Durations } from '../../runtime/problem-log.ts';
import type { ObservedPod } from '../cluster/pod-view.ts';
import type { ExtenderContext } from '../telemetry/context.ts';

const MAX_LAUNCHERS = 5000;

const decision = z.object({
  cpus: z.object({ compute: z.number().optional() }).optional(),
  padding: z.number().optional(),
  threadsPerCore: z.number().optional(),
  resources: z.array(z.string()).default([]),
  nodes: z.array(z.string()).default([]),
  notes: z
    .array(z.object({ type: z.enum(['Normal', 'Warning']), reason: z.string(), message: z.string() }))
    .default([]),
});

/**
 * Announces what the webhook decided about a launcher, which itself writes no Events: anyone can send it a review, while a
 * launcher in the watch has passed admission. One that has a node was announced by the replica that was active then.
 *
 * Remembered: launchers without a node that were seen while another replica was active, and those announced here. Owner:
 * their pods. Age: any, since clocks are not compared. End: the oldest of MAX_LAUNCHERS; one that still waits may then be
 * announced again.
 */
export function launcherAnnouncer({ events, active }: Pick<ExtenderContext, 'events' | 'active'>) {
  const launchers = new BoundedMap<string, 'waiting' | 'announced'>(MAX_LAUNCHERS);
  return (pod: ObservedPod): void => {
    const { uid, namespace = '', annotations } = pod.metadata;
    const text = annotations?.[DECISION_ANNOTATION];
    if (text === undefined || uid === undefined || !isLauncher(pod.metadata)) return;
    const before = launchers.get(uid);
    if (before === 'announced') return;
    const isWaiting = (pod.spec.nodeName ?? '') === '';
    if (!active()) {
      if (isWaiting) launchers.set(uid, 'waiting');
      else launchers.delete(uid);
      return;
    }
    if (!isWaiting && before === undefined) return;
    const launcher = recognizeLauncher(pod);
    if (launcher.kind !== 'launcher') return;
    launchers.set(uid, 'announced');
    const vmi = vmiObject(namespace, launcher.vmi);
    for (const event of launcherEventsOf(text)) events.record(vmi, event);
  };
}

/** The Events that describe a decision annotation; none if it cannot be read. */
export function launcherEventsOf(text: string): EventText[] {
  const parsed = decision.safeParse(parseJson(text));
  if (!parsed.success) return [];
  const { cpus: { compute } = {}, padding = 0, threadsPerCore, resources, nodes, notes } = parsed.data;
  const events: EventText[] = [];
  const add = (reason: string, message: string) => events.push({ type: 'Normal', reason, message });
  if (padding > 0 && compute !== undefined)
    add(
      'PaddedToWholeCores',
      `Padded the launcher's CPUs from ${compute - padding} to ${compute}: whole cores of ${threadsPerCore} threads. Quotas and limit ranges of the namespace apply to ${compute} CPUs`,
    );
  if (resources.length > 0)
    add(
      'NodesRestrictedByNetworks',
      `The launcher asks for CPUs on the NUMA nodes of its networks: ${resources.join(', ')}`,
    );
  if (nodes.length > 0)
    add('NodesRestrictedByCores', `The launcher avoids nodes that would reject its CPUs: ${nodes.join(', or ')}`);
  return [...events, ...notes];
}

export function agentAnnouncer({ events, log }: Pick<ExtenderContext, 'events' | 'log'>) {
  const silences = new Durations();
  return (node: string, isReady: boolean): void => {
    const event = isReady ? 'AgentReady' : 'AgentNotReady';
    const message = isReady
      ? 'The agent reports again'
      : `The agent does not renew its Lease ${AGENT_LEASE_PREFIX}${node}: Plumbline does not know which CPUs of this node are free`;
    if (isReady) log.info({ node, event, message, ...silences.end(node) }, 'agent reports again');
    else {
      silences.begin(node);
      log.warn({ node, event, message }, 'agent is silent: its Lease has expired');
    }
    events.record(nodeTarget(node), { type: isReady ? 'Normal' : 'Warning', reason: event, message });
  };
}

interface QuarantineOptions extends Pick<ExtenderContext, 'events' | 'active'> {
  readonly faults: ReadonlyMap<string, ReportFault>;
  readonly metrics: Pick<ExtenderContext['metrics'], 'quarantinedReports'>;
}

export function createQuarantine({ faults, events, active, metrics }: QuarantineOptions) {
  const announce = (node: string, { message }: ReportFault): void => {
    if (!active()) return;
    const text = `${message}; Plumbline ignores this node's report`;
    events.record(nodeTarget(node), { type: 'Warning', reason: 'ReportQuarantined', message: text });
  };
  return {
    changed(node: string, fault: ReportFault | undefined): void {
      metrics.quarantinedReports.set(faults.size);
      if (fault !== undefined) announce(node, fault);
    },
    announceAll(): void {
      for (const [node, fault] of faults) announce(node, fault);
    },
  };
}
