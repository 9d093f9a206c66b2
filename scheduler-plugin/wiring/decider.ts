import type { KubeClient } from '../../kube/client.ts';
import type { EventRecorder } from '../../kube/events.ts';
import { renewalsBeyondRestarts } from '../../model/lease/observer.ts';
import type { Cluster } from '../cluster/cluster.ts';
import { DpuMonitor } from '../cluster/dpu-health.ts';
import type { Fleet } from '../cluster/fleet.ts';
import { createMaskedVms } from '../cluster/masked-vms.ts';
import { NodeExclusions } from '../cluster/node-exclusions.ts';
import type { NeedsReader } from '../cluster/pod-needs.ts';
import type { PodView } from '../cluster/pod-view.ts';
import { DpuRecovery } from '../controllers/dpu-recovery.ts';
import { DpuRestarts } from '../controllers/dpu-restarts.ts';
import { Evictions, stuckPodOf, whyStuck } from '../controllers/evictions.ts';
import { agentAnnouncer, createQuarantine, launcherAnnouncer } from '../controllers/launcher-events.ts';
import { Lookahead } from '../controllers/lookahead.ts';
import { createMaskSurvey } from '../controllers/mask-survey.ts';
import { NodeWriter } from '../controllers/node-writer.ts';
import { PausedStarts } from '../controllers/paused-starts.ts';
import { createPredictionCheck } from '../controllers/prediction-check.ts';
import { Recheck } from '../controllers/recheck.ts';
import { Extender } from '../extender/extender.ts';
import { DecisionLog, type Decisions } from '../filter/decisions.ts';
import { NodeVerdicts } from '../filter/node-verdicts.ts';
import type { SchedulerLeaseReplica } from '../replica/scheduler-lease.ts';
import type { ExtenderLogger } from '../telemetry/log-messages.ts';
import type { ExtenderMetrics } from '../telemetry/metrics.ts';
import type { SchedulerPluginConfig } from './config.ts';

export interface DeciderOptions {
  readonly config: SchedulerPluginConfig;
  readonly client: KubeClient;
  readonly reader: NeedsReader;
  readonly cluster: Cluster;
  readonly replica: Pick<SchedulerLeaseReplica, 'isActive' | 'mayAnswer'>;
  readonly events: EventRecorder;
  readonly decisions: Decisions;
  readonly metrics: ExtenderMetrics;
  readonly log: ExtenderLogger;
  readonly nowSeconds: () => number;
}

type Parts = ReturnType<typeof createParts>;

/** What decides about pods and acts on the decisions. `run` starts it. */
export class Decider {
  readonly verdicts: NodeVerdicts;
  readonly extender: Extender;
  readonly recheck: Recheck;
  readonly #options: DeciderOptions;
  readonly #parts: Parts;

  constructor(options: DeciderOptions) {
    this.#options = options;
    this.#parts = createParts(options);
    this.verdicts = this.#parts.verdicts;
    this.extender = this.#parts.extender;
    this.recheck = this.#parts.recheck;
    this.#followState();
    this.#followCluster();
  }

  async run(signal: AbortSignal): Promise<void> {
    const { masks } = this.#parts;
    await Promise.all([this.#options.cluster, masks.vms, masks.survey].map((part) => part.run(signal)));
  }

  /** Call it when this replica has become the active one: it completes the work that another one has left. */
  becameActive(): void {
    const { recheck, restarts, writer, masks, quarantine } = this.#parts;
    const { pods, nodes, state } = this.#options.cluster;
    writer.requeueAll();
    masks.starts.requeueAll();
    quarantine.announceAll();
    restarts.checkAll();
    recheck.takeOver(pods.values());
    for (const node of nodes.keys()) {
      recheck.improved(node);
      for (const pod of state.startingOn(node)) this.#evictIfStuck(pod);
    }
  }

  stop(): void {
    const { lookahead, recheck, evictions, restarts, writer, dpuHealth, masks } = this.#parts;
    for (const part of [lookahead, recheck, evictions, restarts, writer, dpuHealth, masks.starts]) part.stop();
  }

  #followState(): void {
    const { metrics, replica, cluster } = this.#options;
    const { recheck, exclusions, decisionLog, predictionCheck, dpuHealth, writer, quarantine } = this.#parts;
    cluster.state
      .on('improved', (node) => recheck.improved(node))
      .on('bound', (pod) => void (replica.isActive() && decisionLog.placed(pod)))
      .on('settled', (uid) => recheck.settled(uid))
      .on('waiting', (pod) => recheck.unschedulable(pod))
      .on('starting', (pod) => this.#evictIfStuck(pod))
      .on('rejected', (pod, isExplained) => exclusions.add(pod, isExplained))
      .on('reservationEnded', (reservation, end) => {
        metrics.reservationEnds.inc({ end });
        predictionCheck.ended(reservation, end);
      })
      .on('nodeFacts', (node) => {
        dpuHealth.nodeChanged(node);
        writer.requeue(node);
      })
      .on('quarantined', (node, fault) => quarantine.changed(node, fault));
  }

  #followCluster(): void {
    const { cluster, events, replica } = this.#options;
    const { state } = cluster;
    const { dpuHealth, restarts, writer, masks } = this.#parts;
    restarts.on('changed', (node) => writer.requeue(node));
    dpuHealth.on('changed', (node, verdict) => {
      state.setFlag(node, 'dpuDead', verdict?.ready === false);
      writer.requeue(node);
      if (verdict?.state === 'dead') for (const pod of state.startingOn(node)) this.#evictIfStuck(pod);
    });
    cluster
      .on(
        'pod',
        launcherAnnouncer(events, () => replica.isActive()),
      )
      .on('dpuLease', (node, lease) => {
        dpuHealth.leaseChanged(node, lease);
        restarts.leaseChanged(node, lease?.restart);
      })
      .on('pinnings', (node, pinnings) => masks.starts.reported(node, pinnings));
  }

  #evictIfStuck(pod: PodView): void {
    const { dpuHealth, evictions } = this.#parts;
    const why = whyStuck(pod, { state: this.#options.cluster.state, dpuHealth });
    if (why !== undefined) evictions.consider(pod, why);
  }
}

function createParts(options: DeciderOptions) {
  const { config, client, cluster, replica, events, metrics, log, nowSeconds } = options;
  const { unpredictable, answers, reservationTimeout } = config;
  const { state, nodes } = cluster;
  const { fleet, faults } = state;
  const active = () => replica.isActive();

  const dpuHealth = new DpuMonitor({
    client,
    namespace: config.dpuLeaseNamespace,
    whenUnknown: config.dpuUnknown,
    proof: config.dpuLease === 'own' ? () => 1 : renewalsBeyondRestarts,
    nodes,
    log,
    nowSeconds,
  });
  const decisionLog = new DecisionLog(log);
  const exclusions = new NodeExclusions({ fleet, onEnd: (node) => void state.emit('improved', node), log, nowSeconds });
  const verdicts = new NodeVerdicts({ state, exclusions, dpuHealth, unpredictable, nowSeconds });
  const lookahead = new Lookahead({ fleet, verdicts, log });
  const announce = agentAnnouncer(events, log);
  const recovery = new DpuRecovery({ client, events, log });
  const restarts = new DpuRestarts({
    client,
    events,
    scope: config.dpuScope,
    active,
    migrate: config.dpuRecovery === 'migrate' ? recovery.migrate : undefined,
    log,
  });
  const writer = new NodeWriter({ client, fleet, nodes, dpuHealth, restarts, active, announce, log });
  const recheck = new Recheck({
    wouldFit: (needs, node) => verdicts.wouldFit(needs, node),
    isExcluded(needs, name) {
      const node = fleet.get(name);
      return node !== undefined && exclusions.refusalOf(node, needs) !== undefined;
    },
    active,
    async touch(node) {
      metrics.rechecks.inc();
      return writer.touch(node);
    },
    log,
    nowSeconds,
  });
  const evictions = new Evictions({
    client,
    events,
    policy: config.eviction,
    stuck: (pod) => stuckPodOf(pod, { state, dpuHealth }),
    active,
    onAttempt: (outcome) => metrics.evictions.inc({ outcome }),
    log,
  });
  const predictionCheck = createPredictionCheck({ state, cluster, events, metrics, log });
  const quarantine = createQuarantine({ faults, events, active, metrics });
  const masks = createCpuMasks({ client, events, fleet, metrics, active, log, nowSeconds });
  const extender = new Extender({
    ...options,
    state,
    verdicts,
    lookahead,
    recheck,
    decisionLog,
    unpredictable,
    answers,
    reservationTimeout,
  });
  return {
    dpuHealth,
    decisionLog,
    exclusions,
    verdicts,
    lookahead,
    restarts,
    writer,
    recheck,
    evictions,
    predictionCheck,
    quarantine,
    masks,
    extender,
  };
}

interface CpuMasksOptions extends Pick<DeciderOptions, 'client' | 'events' | 'metrics' | 'log' | 'nowSeconds'> {
  readonly fleet: Fleet;
  readonly active: () => boolean;
}

function createCpuMasks({ client, events, fleet, metrics, active, log, nowSeconds }: CpuMasksOptions) {
  const starts = new PausedStarts({ client, events, active, onResumed: () => metrics.resumed.inc(), log, nowSeconds });
  const vms = createMaskedVms({
    client,
    onInstance: (key, instance) => starts.changed(key, instance),
    log,
    nowSeconds,
  });
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
  return { starts, vms, survey };
}
