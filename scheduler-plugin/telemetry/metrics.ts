import { Counter, Gauge, Histogram, type Registry } from '../../runtime/metrics.ts';

export type ExtenderMetrics = ReturnType<typeof createExtenderMetrics>;

export function createExtenderMetrics(registry: Registry) {
  const registers = [registry];
  const predictions = new Counter({
    name: 'plumbline_extender_predictions_total',
    help: 'Placed pods with exclusive CPUs, by whether the kubelet did as predicted (as_predicted, other_cpus, rejected, not_compared)',
    labelNames: ['result'],
    registers,
  });
  // A counter that begins with 1 has not increased, so no alert would fire.
  for (const result of ['as_predicted', 'other_cpus', 'rejected', 'not_compared']) predictions.inc({ result }, 0);
  return {
    predictions,
    calls: new Counter({
      name: 'plumbline_extender_calls_total',
      help: 'Calls by verb and outcome (ok, error, malformed)',
      labelNames: ['verb', 'outcome'],
      registers,
    }),
    seconds: new Histogram({
      name: 'plumbline_extender_call_seconds',
      help: 'Seconds from the request body to the answer',
      labelNames: ['verb'],
      buckets: [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.05, 0.25, 1],
      registers,
    }),
    refusals: new Counter({
      name: 'plumbline_extender_refused_nodes_total',
      help: 'Nodes refused, by reason',
      labelNames: ['reason'],
      registers,
    }),
    reservations: new Gauge({
      name: 'plumbline_extender_reservations',
      help: 'Pods with reserved CPUs that are in no report yet: unbound pods, and all',
      labelNames: ['kind'],
      registers,
    }),
    reservationEnds: new Counter({
      name: 'plumbline_extender_reservations_ended_total',
      help: 'Ended reservations, by reason',
      labelNames: ['end'],
      registers,
    }),
    active: new Gauge({
      name: 'plumbline_extender_active',
      help: '1 while this replica is active',
      registers,
    }),
    rechecks: new Counter({
      name: 'plumbline_extender_rechecks_total',
      help: 'Nodes touched so that the scheduler retries waiting pods',
      registers,
    }),
    waiting: new Gauge({
      name: 'plumbline_extender_waiting_pods',
      help: 'Waiting pods that the extender refused on every node',
      registers,
    }),
    evictions: new Counter({
      name: 'plumbline_extender_evictions_total',
      help: 'Attempts to remove a pod that cannot start on its node, by outcome (evicted, deleted, gone, changed, refused, failed)',
      labelNames: ['outcome'],
      registers,
    }),
    quarantinedReports: new Gauge({
      name: 'plumbline_extender_quarantined_reports',
      help: 'Node reports that are ignored because they contradict themselves or their Node',
      registers,
    }),
    silentAgents: new Gauge({
      name: 'plumbline_extender_silent_agents',
      help: 'Nodes whose agent has not renewed its Lease in time; their reports are not used',
      registers,
    }),
    ...createMaskMetrics(registers),
  };
}

/** Metrics of CPU masks; only the active replica sets them. */
function createMaskMetrics(registers: Registry[]) {
  return {
    maskedVms: new Gauge({
      name: 'plumbline_extender_masked_vms',
      help: 'VMs with a CPU mask, as the active replica counts them',
      registers,
    }),
    maskedVmsWithoutNode: new Gauge({
      name: 'plumbline_extender_masked_vms_without_node',
      help: 'VMs whose CPU mask fits no node, as the active replica counts them; plumbline verify lists them',
      registers,
    }),
    pausedStarts: new Gauge({
      name: 'plumbline_extender_paused_starts',
      help: 'VMs that start paused and wait to be pinned, as the active replica counts them',
      registers,
    }),
    resumed: new Counter({
      name: 'plumbline_extender_resumed_vms_total',
      help: 'VMs that this replica has resumed once they were pinned',
      registers,
    }),
  };
}
