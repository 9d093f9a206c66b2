import { renewalsBeyondRestarts } from '../../model/lease/observer.ts';
import type { Cluster } from '../cluster/cluster.ts';
import { DpuMonitor } from '../cluster/dpu-health.ts';
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
import type { ExtenderContext } from '../telemetry/context.ts';
import type { SchedulerPluginConfig } from './config.ts';

interface DeciderOptions extends Omit<ExtenderContext, 'active'> {
  readonly config: SchedulerPluginConfig;
  readonly reader: NeedsReader;
  readonly cluster: Cluster;
  readonly replica: Pick<SchedulerLeaseReplica, 'isActive' | 'mayAnswer'>;
  readonly decisions: Decisions;
}

/** What decides about pods and acts on the decisions. `run` starts it. */
export function createDecider(options: DeciderOptions) {
  const { cluster, replica, metrics } = options;
  const { state, pods, nodes } = cluster;
  const context = { ...options, active: () => replica.isActive() };
  const { dpuHealth, restarts, writer, evictions, quarantine, checkPrediction } = createControllers(context);
  const { exclusions, verdicts, lookahead, recheck, log, extender } = createFilterParts(context, dpuHealth, writer);
  const masks = createCpuMasks(context);

  const evictIfStuck = (pod: PodView): void => {
    const why = whyStuck(pod, { state, dpuHealth });
    if (why !== undefined) evictions.consider(pod, why);
  };
  state
    .on('improved', (node) => recheck.improved(node))
    .on('bound', (pod) => void (replica.isActive() && log.placed(pod)))
    .on('settled', (uid) => recheck.settled(uid))
    .on('waiting', (pod) => recheck.unschedulable(pod))
    .on('starting', evictIfStuck)
    .on('rejected', (pod, isExplained) => exclusions.add(pod, isExplained))
    .on('reservationEnded', (reservation, end) => {
      metrics.reservationEnds.inc({ end });
      checkPrediction(reservation, end);
    })
    .on('nodeFacts', (node) => {
      dpuHealth.nodeChanged(node);
      writer.requeue(node);
    })
    .on('quarantined', (node, fault) => quarantine.changed(node, fault));
  restarts.on('changed', (node) => writer.requeue(node));
  dpuHealth.on('changed', (node, verdict) => {
    state.setFlag(node, 'dpuDead', verdict?.ready === false);
    writer.requeue(node);
    if (verdict?.state === 'dead') for (const pod of state.startingOn(node)) evictIfStuck(pod);
  });
  cluster
    .on('pod', launcherAnnouncer(context))
    .on('dpuLease', (node, lease) => {
      dpuHealth.leaseChanged(node, lease);
      restarts.leaseChanged(node, lease?.restart);
    })
    .on('pinnings', (node, pinnings) => masks.starts.reported(node, pinnings));

  return {
    verdicts,
    extender,
    recheck,
    run: (signal: AbortSignal) => Promise.all([cluster, masks.vms, masks.survey].map((part) => part.run(signal))),
    /** Call it when this replica has become the active one: it completes the work that another one has left. */
    becameActive(): void {
      writer.requeueAll();
      masks.starts.requeueAll();
      quarantine.announceAll();
      restarts.checkAll();
      recheck.takeOver(pods.values());
      for (const node of nodes.keys()) {
        recheck.improved(node);
        for (const pod of state.startingOn(node)) evictIfStuck(pod);
      }
    },
    stop(): void {
      for (const part of [lookahead, recheck, evictions, restarts, writer, dpuHealth, masks.starts]) part.stop();
    },
  };
}

type Context = DeciderOptions & ExtenderContext;

function createControllers(context: Context) {
  const { config, cluster, metrics } = context;
  const { state, nodes } = cluster;
  const dpuHealth = new DpuMonitor({
    ...context,
    nodes,
    namespace: config.dpuLeaseNamespace,
    whenUnknown: config.dpuUnknown,
    proof: config.dpuLease === 'own' ? () => 1 : renewalsBeyondRestarts,
  });
  const recovery = new DpuRecovery(context);
  const migrate = config.dpuRecovery === 'migrate' ? recovery.migrate : undefined;
  const restarts = new DpuRestarts({ ...context, scope: config.dpuScope, migrate });
  const announce = agentAnnouncer(context);
  const writer = new NodeWriter({ ...context, fleet: state.fleet, nodes, dpuHealth, restarts, announce });
  const evictions = new Evictions({
    ...context,
    policy: config.eviction,
    stuck: (pod) => stuckPodOf(pod, { state, dpuHealth }),
    onAttempt: (outcome) => metrics.evictions.inc({ outcome }),
  });
  const quarantine = createQuarantine({ ...context, faults: state.faults });
  const checkPrediction = createPredictionCheck({ ...context, state });
  return { dpuHealth, restarts, writer, evictions, quarantine, checkPrediction };
}

function createFilterParts(context: Context, dpuHealth: DpuMonitor, writer: NodeWriter) {
  const { state } = context.cluster;
  const { fleet } = state;
  const { unpredictable, answers, reservationTimeout } = context.config;
  const exclusions = new NodeExclusions({ ...context, fleet, onEnd: (node) => void state.emit('improved', node) });
  const verdicts = new NodeVerdicts({ ...context, state, exclusions, dpuHealth, unpredictable });
  const lookahead = new Lookahead({ ...context, fleet, verdicts });
  const recheck = new Recheck({
    ...context,
    wouldFit: (needs, node) => verdicts.wouldFit(needs, node),
    isExcluded(needs, name) {
      const node = fleet.get(name);
      return node !== undefined && exclusions.refusalOf(node, needs) !== undefined;
    },
    async touch(node) {
      context.metrics.rechecks.inc();
      return writer.touch(node);
    },
  });
  const log = new DecisionLog(context.log);
  const settings = { unpredictable, answers, reservationTimeout };
  const extender = new Extender({ ...context, ...settings, state, verdicts, lookahead, recheck, decisionLog: log });
  return { exclusions, verdicts, lookahead, recheck, log, extender };
}

function createCpuMasks(context: Context) {
  const { metrics, active } = context;
  const starts = new PausedStarts({ ...context, onResumed: () => metrics.resumed.inc() });
  const { client, log, nowSeconds } = context;
  const vms = createMaskedVms({ client, log, nowSeconds, onInstance: (key, vmi) => starts.changed(key, vmi) });
  const survey = createMaskSurvey({
    fleet: context.cluster.state.fleet,
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
