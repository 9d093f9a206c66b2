import { type Gauge, metricsOf, type Registry } from '../../runtime/metrics.ts';

/** Seconds: from about a millisecond, for moving a few threads, to the two seconds that a vacate may take. */
const MOVE_BUCKETS = [0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.5, 1, 2];

/** Milliseconds between measurements of the event loop's lag: the usual 10 would be most of an idle agent's cost. */
export const LAG_PRECISION_MILLISECONDS = 30_000;

/** Removes a gauge's initial 0, which would look like a value. */
function onceKnown(gauge: Gauge): Gauge {
  gauge.remove();
  return gauge;
}

const PER_DAEMON: 'daemon'[] = ['daemon'];
const PER_RESOURCE: ('resource' | 'outcome')[] = ['resource', 'outcome'];
const PER_VM: ('namespace' | 'name')[] = ['namespace', 'name'];

export type AgentMetrics = ReturnType<typeof createAgentMetrics>;

export function createAgentMetrics(registry: Registry) {
  const { counter, gauge, histogram } = metricsOf(registry, 'plumbline');
  return {
    /** The label `resource`, derived from a physnet’s name. */
    resourceLabel: createBoundedLabel(),
    dutyRunning: gauge('duty_running', 'Whether a duty of the agent runs (1) or waits for a restart (0)', ['duty']),
    dutyFailures: counter('duty_failures_total', 'Failures of a duty', ['duty']),
    podResourcesFailures: counter('pod_resources_failures_total', 'Rounds of queries that the kubelet did not answer', [
      'code',
    ]),
    assignmentsCurrent: gauge('assignments_current', 'Whether the CPU assignments are known and current'),
    exclusiveCpus: gauge('exclusive_cpus', 'CPUs that containers own exclusively'),
    ovsEnabled: gauge('ovs_affinity_enabled', 'Whether the agent manages the affinity of Open vSwitch'),
    ovsThreads: gauge('ovs_threads', 'Threads that the agent manages', PER_DAEMON),
    ovsClipped: gauge(
      'ovs_clipped_threads',
      'Threads that their cpuset confines to fewer CPUs than intended',
      PER_DAEMON,
    ),
    ovsMoves: counter('ovs_thread_moves_total', 'Changes of a thread’s affinity', PER_DAEMON),
    ovsDisplaced: counter(
      'ovs_displaced_threads_total',
      'Threads found on other CPUs than the agent had set: another process sets them too',
      PER_DAEMON,
    ),
    ovsContended: gauge(
      'ovs_affinity_contended',
      'Whether another process keeps setting the CPUs of Open vSwitch’s threads; the agent then only keeps them off owned CPUs',
    ),
    ovsLastChange: gauge('ovs_last_change_timestamp_seconds', 'When a thread was moved last', PER_DAEMON),
    ovsErrors: counter('ovs_affinity_errors_total', 'Problems with Open vSwitch’s threads, counted when they begin', [
      'cause',
    ]),
    ovsRefused: gauge('ovs_refused_threads', 'Threads that the kernel refused to move', PER_DAEMON),
    ovsMoveSeconds: histogram(
      'ovs_move_seconds',
      'Time from the agent learning of a changed assignment to the last moved thread',
      MOVE_BUCKETS,
    ),
    ovsVacatedSeconds: histogram(
      'ovs_assigned_to_vacated_seconds',
      'Time from the kubelet’s write of an assignment (the file’s timestamp) to the last thread off its CPUs',
      MOVE_BUCKETS,
    ),
    vacateSeconds: histogram(
      'ovs_vacate_seconds',
      'Time a container’s start waited for Open vSwitch to leave its CPUs',
      MOVE_BUCKETS,
    ),
    reportWrites: counter('report_writes_total', 'Writes of the NodeTopology status', ['outcome']),
    heartbeats: counter('heartbeats_total', 'Renewals of the agent’s Lease', ['outcome']),
    dpuRenewals: counter('dpu_lease_renewals_total', 'Renewals of the DPU’s Lease', ['outcome']),
    dpuReady: onceKnown(gauge('dpu_ready', 'Whether the DPU counts as ready, seen from the host')),
    dpuState: gauge('dpu_lease_state', 'State of the DPU by its Lease: 1 for the present state', ['state']),
    dpuRenewalAge: onceKnown(
      gauge('dpu_lease_renewal_age_seconds', 'Seconds since a renewal of the DPU’s Lease was last seen'),
    ),
    dpuTokenExpiry: onceKnown(gauge('dpu_token_expiry_seconds', 'Seconds until the token of the DPU’s agent expires')),
    dpuTokenFailures: counter(
      'dpu_token_renewal_failures_total',
      'Failed attempts to renew the token of the DPU’s agent',
    ),
    gateCalls: counter('gate_calls_total', 'Calls of the CNI gate, by outcome', ['verb', 'outcome']),
    gateSeconds: histogram('gate_seconds', 'Time the agent took to answer the CNI gate', MOVE_BUCKETS, ['verb']),
    gateInstalled: onceKnown(gauge('gate_installed', 'Whether the gate is installed before the primary network')),
    registrations: counter('device_plugin_registrations_total', 'Registrations with the kubelet', PER_RESOURCE),
    allocationChecks: counter(
      'allocation_checks_total',
      'Allocations of containers with a network’s device, checked before they start',
      PER_RESOURCE,
    ),
    ...vmMetrics(registry),
    networksProblems: gauge('networks_problems', 'Unknown or wrong facts about the node’s networks'),
    preStarts: counter('device_plugin_pre_starts_total', 'Container starts that waited for the agent', PER_RESOURCE),
  };
}

function vmMetrics(registry: Registry) {
  const { counter, gauge } = metricsOf(registry, 'plumbline');
  return {
    vmPinning: gauge('vm_pinning', 'Virtual machines with a CPU mask, by state', ['state']),
    vmMaskOverlaps: gauge('vm_mask_overlaps', 'Pairs of virtual machines whose CPU masks share CPUs'),
    vmHousekeeping: gauge('vm_housekeeping', 'Virtual machines whose emulator has dedicated CPUs', ['state']),
    vmThreadMoves: counter('vm_thread_moves_total', 'Changes of the CPUs of a VM’s threads and cgroups', ['cause']),
    vmInterrupts: counter(
      'vm_interrupt_seconds_total',
      'CPU time that interrupts and softirqs took from a VM with dedicated CPUs; absent where the kernel does not count it',
      PER_VM,
    ),
    vmRunDelay: counter('vm_run_delay_seconds_total', 'Time in which vCPU threads waited for a dedicated CPU', PER_VM),
    vmOwnThreads: counter('vm_own_thread_seconds_total', 'CPU time of a VM’s vhost, IO and emulator threads', PER_VM),
    interruptItems: gauge('interrupt_items', 'Interrupts, queues and kernel threads on owned CPUs, by state', [
      'kind',
      'state',
    ]),
    interruptWrites: counter('interrupt_writes_total', 'Changes of where work of the kernel runs', ['kind', 'outcome']),
    interruptsDisplaced: counter(
      'interrupts_displaced_total',
      'Work of the kernel found on owned CPUs again: another process also sets it',
      ['kind'],
    ),
    vmStolenShare: gauge(
      'vm_stolen_ratio',
      'Interrupts and run delay as a share of the time of the VM’s dedicated CPUs, in the last minute',
      PER_VM,
    ),
  };
}

/** Maximum values of one label; later ones become `other`. A series lives as long as the process. */
const MAX_VALUES = 512;
const MAX_LABEL_CHARACTERS = 128;

/** Bounds the values of a metric's label that others choose, such as the names of physnets. */
function createBoundedLabel(): (value: string) => string {
  const values = new Set<string>();
  return (value) => {
    if (values.has(value)) return value;
    if (values.size >= MAX_VALUES || value.length > MAX_LABEL_CHARACTERS) return 'other';
    values.add(value);
    return value;
  };
}
