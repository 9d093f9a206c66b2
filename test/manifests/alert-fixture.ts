/** In promtool's notation: series with which the alert fires after an hour, and the nearest with which it does not. */
export interface AlertCase {
  readonly fires: Readonly<Record<string, string>>;
  readonly labels: Readonly<Record<string, string>>;
  readonly silent: Readonly<Record<string, string>>;
}

/** A series over 71 minutes. */
const steady = (value: number) => `${value}x70`;
/** The end of a certificate, in days after the evaluation of the rules; the clock starts at 0. */
const ending = (days: number) => steady(65 * 60 + days * 86_400);
const rising = (step: number) => `0+${step}x70`;

type Labels = Readonly<Record<string, string>>;

const seriesOf = (metric: string, labels: Labels) => {
  const selector = Object.entries(labels).map(([name, value]) => `${name}="${value}"`);
  return `${metric}{${selector.join(',')}}`;
};

/** @param own labels of the series that the alert does not have */
const gauge = (metric: string, bad: string, good: string, labels: Labels = {}, own: Labels = {}): AlertCase => ({
  fires: { [seriesOf(metric, { ...labels, ...own })]: bad },
  labels,
  silent: { [seriesOf(metric, { ...labels, ...own })]: good },
});
const byNode = (metric: string, bad: string, good: string, more: Labels = {}): AlertCase =>
  gauge(metric, bad, good, { node: 'n1', ...more });

/** A series of each pod, `a` and `b`, for one alert. */
const ofPods = (metric: string, labels: Labels, bad: string[], good: string[], own: Labels = {}): AlertCase => {
  const pods = (series: readonly string[]) =>
    Object.fromEntries(
      series.map((values, i) => [seriesOf(metric, { ...labels, ...own, pod: 'ab'.charAt(i) }), values]),
    );
  return { fires: pods(bad), labels, silent: pods(good) };
};

/** A counter of outcomes, of which one fires and is a label of the alert. */
const byOutcome = (metric: string, labels: Labels, bad: string, good: string, values = rising(1)): AlertCase => ({
  fires: { [seriesOf(metric, { ...labels, outcome: bad })]: values },
  labels: { ...labels, outcome: bad },
  silent: { [seriesOf(metric, { ...labels, outcome: good })]: values },
});

/** A histogram: the increases of its buckets, which end at `upTo` seconds. */
const slow = (metric: string, labels: Labels, upTo: readonly string[], bad: number[], good: number[]): AlertCase => {
  const buckets = (steps: readonly number[]) =>
    Object.fromEntries(upTo.map((le, i) => [seriesOf(`${metric}_bucket`, { ...labels, le }), rising(steps[i] ?? 0)]));
  return { fires: buckets(bad), labels, silent: buckets(good) };
};

export const ALERT_CASES: Readonly<Record<string, AlertCase>> = {
  PlumblineWebhookDown: ofPods('up', {}, [steady(0)], [steady(0), steady(1)], { job: 'plumbline-webhook' }),
  PlumblineWebhookFails: byOutcome('plumbline_webhook_reviews_total', { review: 'mutatePods' }, 'failed', 'denied'),
  PlumblineWebhookSlow: slow(
    'plumbline_webhook_review_seconds',
    { review: 'mutatePods' },
    ['0.05', '1', '3', '+Inf'],
    [5, 5, 10, 10],
    [5, 9, 9, 9],
  ),
  PlumblineCertificateExpires: ofPods(
    'plumbline_certificate_expiry_timestamp_seconds',
    { job: 'plumbline-webhook', certificate: 'serving' },
    [ending(10), ending(80)],
    [ending(20)],
  ),
  PlumblineCertificateExpiresSoon: gauge('plumbline_certificate_expiry_timestamp_seconds', ending(2), ending(15), {
    job: 'plumbline-webhook',
    certificate: 'client',
  }),
  PlumblineExtenderNotActive: ofPods('plumbline_extender_active', {}, [steady(0), steady(0)], [steady(0), steady(1)]),
  PlumblineExtenderErrors: byOutcome('plumbline_extender_calls_total', { verb: 'filter' }, 'error', 'ok', rising(60)),
  PlumblineExtenderSlow: slow(
    'plumbline_extender_call_seconds',
    { verb: 'filter' },
    ['0.05', '0.25', '1', '+Inf'],
    [5, 5, 10, 10],
    [9, 9, 9, 9],
  ),
  PlumblinePodsWait: ofPods('plumbline_extender_waiting_pods', {}, [steady(2), steady(0)], ['2x20 0x50']),
  PlumblineReservationsExpire: {
    fires: { 'plumbline_extender_reservations_ended_total{end="expired"}': rising(1) },
    labels: {},
    silent: { 'plumbline_extender_reservations_ended_total{end="shown"}': rising(1) },
  },
  PlumblinePredictionsDiffer: {
    fires: { 'plumbline_extender_predictions_total{result="rejected",pod="a"}': '0x50 1x20' },
    labels: { result: 'rejected' },
    silent: { 'plumbline_extender_predictions_total{result="not_compared",pod="a"}': rising(1) },
  },
  PlumblineAgentsSilent: ofPods('plumbline_extender_silent_agents', {}, [steady(1), steady(0)], ['0x61 1x8']),
  PlumblineAgentDown: {
    fires: { 'up{job="plumbline-node-agent-dpu-host",node="n1"}': steady(0) },
    labels: { job: 'plumbline-node-agent-dpu-host', node: 'n1' },
    silent: { 'up{job="plumbline-node-agent",node="n1"}': steady(1) },
  },
  PlumblineDutyDown: byNode('plumbline_duty_running', steady(0), '0x3 1x67', { duty: 'report' }),
  PlumblineAssignmentsUnknown: byNode('plumbline_assignments_current', steady(0), steady(1)),
  PlumblineReportsNotWritten: {
    fires: {
      'plumbline_report_writes_total{node="n1",outcome="failed"}': rising(1),
      'plumbline_heartbeats_total{node="n1",outcome="failed"}': steady(0),
    },
    labels: { node: 'n1' },
    silent: {
      'plumbline_report_writes_total{node="n1",outcome="written"}': rising(1),
      'plumbline_heartbeats_total{node="n1",outcome="renewed"}': rising(6),
    },
  },
  PlumblineNetworksUnclear: byNode('plumbline_networks_problems', steady(1), steady(0)),
  PlumblineAllocationsRefused: byOutcome(
    'plumbline_allocation_checks_total',
    { node: 'n1', resource: 'r' },
    'NetworkElsewhere',
    'granted',
  ),
  PlumblineStartsUnanswered: {
    fires: { 'plumbline_device_plugin_pre_starts_total{node="n1",resource="r",outcome="unanswered"}': rising(1) },
    labels: { node: 'n1', resource: 'r' },
    silent: { 'plumbline_device_plugin_pre_starts_total{node="n1",resource="r",outcome="passed"}': rising(1) },
  },
  PlumblineDevicesNotRegistered: gauge(
    'plumbline_device_plugin_registrations_total',
    rising(1),
    // A kubelet that restarts.
    '0x40 1x2 2x28',
    { node: 'n1', resource: 'r' },
    { outcome: 'failed' },
  ),
  PlumblineOpenVswitchErrors: byNode('plumbline_ovs_affinity_errors_total', rising(1), steady(3), { cause: 'refused' }),
  PlumblineOpenVswitchClipped: byNode('plumbline_ovs_clipped_threads', steady(4), '4x20 0x50', {
    daemon: 'ovs-vswitchd',
  }),
  PlumblineOpenVswitchRefused: byNode('plumbline_ovs_refused_threads', steady(1), steady(0), {
    daemon: 'ovs-vswitchd',
  }),
  PlumblineOpenVswitchContended: byNode('plumbline_ovs_affinity_contended', steady(1), steady(0)),
  PlumblineMaskNotKept: byNode('plumbline_vm_pinning', steady(1), steady(0), { state: 'refused' }),
  PlumblineMaskWithoutNode: gauge('plumbline_extender_masked_vms_without_node', steady(1), steady(0)),
  PlumblinePausedStartStuck: gauge('plumbline_extender_paused_starts', steady(1), '1x5 0x65'),
  PlumblineMasksOverlap: byNode('plumbline_vm_mask_overlaps', steady(1), '1x10 0x60'),
  PlumblineHousekeepingIncomplete: {
    fires: { 'plumbline_vm_housekeeping{node="n1",state="incomplete"}': steady(1) },
    labels: { node: 'n1' },
    silent: { 'plumbline_vm_housekeeping{node="n1",state="kept"}': steady(1) },
  },
  PlumblineVMDisturbed: gauge('plumbline_vm_stolen_ratio', steady(0.02), steady(0.005), {
    node: 'n1',
    namespace: 'demo',
    name: 'a',
  }),
  PlumblineDPUNotReady: byNode('plumbline_dpu_ready', '1x50 0x20', steady(1)),
  PlumblineDPULeaseNotRenewed: byOutcome(
    'plumbline_dpu_lease_renewals_total',
    { node: 'n1' },
    'withheld',
    'renewed',
    rising(6),
  ),
  PlumblineGateNotInstalled: byNode('plumbline_gate_installed', steady(0), steady(1)),
};
