import type { KubeClient } from '../../kube/client.ts';
import type { EventRecorder } from '../../kube/events.ts';
import { renewalsBeyondRestarts } from '../../model/lease/observer.ts';
import { createCluster } from '../cluster/cluster.ts';
import { ClusterState } from '../cluster/cluster-state.ts';
import { createDpuHealth } from '../cluster/dpu-health.ts';
import type { Fleet } from '../cluster/fleet.ts';
import { createMaskedVms } from '../cluster/masked-vms.ts';
import { NodeExclusions } from '../cluster/node-exclusions.ts';
import { createNeedsReader } from '../cluster/pod-needs.ts';
import { createEvictions, createStuckPods } from '../controllers/evictions.ts';
import { agentAnnouncer, createLauncherEvents, createQuarantine } from '../controllers/launcher-events.ts';
import { createMaskSurvey } from '../controllers/mask-survey.ts';
import { createNodeWriter } from '../controllers/node-writer.ts';
import { createPausedStarts, createStartWriter } from '../controllers/paused-starts.ts';
import { createPredictionCheck } from '../controllers/prediction-check.ts';
import { createRecheck, createTakeover } from '../controllers/recheck.ts';
import { createExtender } from '../extender/extender.ts';
import { DecisionLog } from '../filter/decision-log.ts';
import type { Decisions } from '../filter/refusals.ts';
import type { ExtenderLogger } from '../telemetry/log-messages.ts';
import type { ExtenderMetrics } from '../telemetry/metrics.ts';
import type { SchedulerPluginConfig } from './config.ts';

/** The extender, and the controllers that run while this replica is the active one. */
export type Decider = ReturnType<typeof createDecider>;

export interface DeciderOptions {
  readonly config: SchedulerPluginConfig;
  readonly client: KubeClient;
  readonly events: EventRecorder;
  readonly decisions: Decisions;
  readonly metrics: ExtenderMetrics;
  /** Whether this replica may write to the cluster. */
  readonly isActive: () => boolean;
  /** Whether this replica may give verdicts. */
  readonly mayAnswer: () => boolean;
  readonly log: ExtenderLogger;
  /** Monotonic seconds. */
  readonly now: () => number;
}

/** Wires the watches, the state that they feed, and the parts that answer and act on it. It starts none of them. */
export function createDecider(options: DeciderOptions) {
  const { config, client, events, decisions, metrics, isActive: active, mayAnswer, log, now } = options;
  const { dpuLeaseNamespace, unpredictable, answers, reservationTimeout } = config;
  const reader = createNeedsReader(config.dpuScope, config.dpuExempt);
  const state = new ClusterState(
    {
      improved: (node) => recheck.improved(node),
      bound: (pod) => active() && decisionLog.placed(pod),
      settled: (uid) => recheck.settled(uid),
      waiting: (pod) => takeover.waiting(pod),
      starting: (pod) => stuck.consider(pod, evictions),
      rejected: (pod) => exclusions.add(pod),
      reservationEnded(reservation, end) {
        metrics.reservationEnds.inc({ end });
        predictionCheck.ended(reservation, end);
      },
      nodeFacts(node) {
        dpuHealth.nodeChanged(node);
        writer.look(node);
      },
      quarantined: (node, fault) => quarantine.changed(node, fault),
    },
    log,
    config.unpredictable === 'nearest',
  );
  const dpuHealth = createDpuHealth({
    client,
    namespace: dpuLeaseNamespace,
    whenUnknown: config.dpuUnknown,
    proof: config.dpuLease === 'own' ? () => 1 : renewalsBeyondRestarts,
    isDpuHost: (node) => isDpuHost(node),
    uidOf: (node) => cluster.nodes.get(node)?.uid,
    recorded: (node) => cluster.nodes.get(node)?.dpuReady,
    onChange: (node, { ready, state: lease }) => {
      state.setFlag(node, 'dpuDead', !ready);
      writer.look(node);
      if (lease === 'dead') considerAllOn(node);
    },
    onForgotten: (node) => {
      state.setFlag(node, 'dpuDead', false);
      writer.look(node);
    },
    log,
    now,
  });
  const { fleet, faults } = state;
  const decisionLog = new DecisionLog(log);
  const exclusions = new NodeExclusions({ fleet, onEnd: (node) => recheck.improved(node), log, now });
  const quarantine = createQuarantine({ faults, events, active, metrics });
  const masks = createCpuMasks({ client, events, fleet, metrics, active, log, now });
  const { pinningReported } = masks;
  const { seen: podSeen } = createLauncherEvents({ events, active });
  const fed = { dpuLeaseNamespace, dpuLeaseChanged: dpuHealth.changed, podSeen, pinningReported };
  const cluster = createCluster({ client, state, reader, ...fed, log, now });
  const announce = agentAnnouncer(events, log);
  const writer = createNodeWriter({ client, fleet, nodes: cluster.nodes, dpuHealth, active, announce, log });
  const recheck = createRecheck({
    wouldFit: (needs, node) => extender.wouldFit(needs, node),
    active,
    async touch(node) {
      metrics.rechecks.inc();
      return writer.touch(node);
    },
    now,
  });
  const predictionCheck = createPredictionCheck({ state, cluster, events, metrics, log });
  const takeover = createTakeover({ recheck, pods: () => cluster.pods.values(), active, now });
  const notSynced = () => cluster.missing;
  const podsSeenUntil = () => cluster.podsSeenUntil;
  const judging = { state, exclusions, dpuHealth, recheck, reader, decisions, decisionLog };
  const limits = { unpredictable, answers, reservationTimeout };
  const extender = createExtender({ ...judging, ...limits, metrics, notSynced, mayAnswer, podsSeenUntil, now });
  const isDpuHost = (node: string) => cluster.nodes.get(node)?.dpuHost === true;
  const stuck = createStuckPods({ state, isDpuHost, dpuHealth });
  const evictions = createEvictions({
    client,
    events,
    policy: config.eviction,
    stuck: stuck.stuck,
    active,
    onAttempt: (outcome) => metrics.evictions.inc({ outcome }),
    log,
  });

  function considerAllOn(node: string): void {
    for (const pod of state.startingOn(node)) stuck.consider(pod, evictions);
  }

  return {
    state,
    cluster,
    extender,
    recheck,
    masks,
    /** Call it when this replica has become the active one: it completes the work that another one has left. */
    becameActive() {
      writer.lookAtAll();
      masks.lookAtAll();
      quarantine.lookAtAll();
      takeover.begin();
      for (const node of cluster.nodes.keys()) {
        recheck.improved(node);
        considerAllOn(node);
      }
    },
    stop() {
      for (const part of [recheck, evictions, writer, dpuHealth, masks]) part.stop();
    },
  };
}

interface CpuMasksOptions extends Pick<DeciderOptions, 'client' | 'events' | 'metrics' | 'log' | 'now'> {
  readonly fleet: Fleet;
  readonly active: () => boolean;
}

/**
 * The extender's tasks for VMs with CPU masks other than answering the scheduler: it resumes pinned VMs and counts
 * masks.
 */
export function createCpuMasks(options: CpuMasksOptions) {
  const { client, events, fleet, metrics, active, log, now } = options;
  const starts = createPausedStarts({
    writer: createStartWriter(client),
    events,
    active,
    onResumed: () => metrics.resumed.inc(),
    log,
    now,
  });
  const vms = createMaskedVms({ client, onInstance: starts.changed, log, now });
  const survey = createMaskSurvey({
    fleet,
    masked: vms.all,
    active,
    onCounted: (counts) => {
      metrics.maskedVms.set(counts.vms);
      metrics.maskedVmsWithoutNode.set(counts.withoutNode);
      metrics.pausedStarts.set(active() ? starts.waiting : 0);
    },
  });
  return {
    pinningReported: starts.reported,
    lookAtAll: starts.lookAtAll,
    async run(signal: AbortSignal) {
      await Promise.all([vms.run(signal), survey.run(signal)]);
    },
    stop: starts.stop,
  };
}
