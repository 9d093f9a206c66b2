import { metricsOf, type Registry } from '../../runtime/metrics.ts';

export type ExtenderMetrics = ReturnType<typeof createExtenderMetrics>;

export function createExtenderMetrics(registry: Registry) {
  const { counter, gauge, histogram } = metricsOf(registry, 'plumbline_extender');
  const predictions = counter(
    'predictions_total',
    'Placed pods with exclusive CPUs, by whether the kubelet did as predicted (as_predicted, other_cpus, rejected, not_compared)',
    ['result'],
  );
  // A counter that begins with 1 has not increased, so no alert would fire.
  for (const result of ['as_predicted', 'other_cpus', 'rejected', 'not_compared']) predictions.inc({ result }, 0);
  return {
    predictions,
    calls: counter('calls_total', 'Calls by verb and outcome (ok, error, malformed)', ['verb', 'outcome']),
    seconds: histogram(
      'call_seconds',
      'Seconds from the request body to the answer',
      [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.05, 0.25, 1],
      ['verb'],
    ),
    refusals: counter('refused_nodes_total', 'Nodes refused, by reason', ['reason']),
    reservations: gauge('reservations', 'Pods with reserved CPUs that are in no report yet: unbound pods, and all', [
      'kind',
    ]),
    reservationEnds: counter('reservations_ended_total', 'Ended reservations, by reason', ['end']),
    active: gauge('active', '1 while this replica is active'),
    rechecks: counter('rechecks_total', 'Nodes touched so that the scheduler retries waiting pods'),
    waiting: gauge('waiting_pods', 'Waiting pods that the extender refused on every node'),
    evictions: counter(
      'evictions_total',
      'Attempts to remove a pod that cannot start on its node: evicted; deleted (KubeVirt denied the eviction); gone or changed in the meantime; refused (disruption budget, KubeVirt, permissions); failed (other errors)',
      ['outcome'],
    ),
    quarantinedReports: gauge(
      'quarantined_reports',
      'Node reports that are ignored because they contradict themselves or their Node',
    ),
    silentAgents: gauge(
      'silent_agents',
      'Nodes whose agent has not renewed its Lease in time; their reports are not used',
    ),
    // Metrics of CPU masks; only the active replica sets them.
    maskedVms: gauge('masked_vms', 'VMs with a CPU mask, as the active replica counts them'),
    maskedVmsWithoutNode: gauge(
      'masked_vms_without_node',
      'VMs whose CPU mask fits no node, as the active replica counts them; plumbline verify lists them',
    ),
    pausedStarts: gauge(
      'paused_starts',
      'VMs that start paused and wait to be pinned, as the active replica counts them',
    ),
    resumed: counter('resumed_vms_total', 'VMs that this replica has resumed once they were pinned'),
  };
}
