import { Counter, Gauge, Histogram, type Registry } from '../runtime/metrics.ts';

/** Seconds; from a thousandth, which moving a few threads takes, to the two seconds a vacate may take. */
const MOVE_BUCKETS = [0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.5, 1, 2];

/** Every metric of the agent beside the process's own. */
export type AgentMetrics = ReturnType<typeof createAgentMetrics>;

export function createAgentMetrics(registry: Registry) {
  const registers = [registry];
  const counter = <Label extends string>(name: string, help: string, labelNames: Label[] = []) =>
    new Counter({ name: `plumbline_${name}`, help, labelNames, registers });
  const gauge = <Label extends string>(name: string, help: string, labelNames: Label[] = []) =>
    new Gauge({ name: `plumbline_${name}`, help, labelNames, registers });
  return {
    dutyRunning: gauge('duty_running', 'Whether a duty of the agent runs (1) or waits to be run again (0)', ['duty']),
    dutyFailures: counter('duty_failures_total', 'Failures of a duty', ['duty']),
    podResourcesFailures: counter('pod_resources_failures_total', 'Rounds the kubelet did not answer', ['code']),
    assignmentsCurrent: gauge('assignments_current', 'Whether the CPU assignments are known and current'),
    exclusiveCpus: gauge('exclusive_cpus', 'CPUs that containers own exclusively'),
    ovsEnabled: gauge('ovs_affinity_enabled', 'Whether the affinity of Open vSwitch is managed'),
    ovsThreads: gauge('ovs_threads', 'Threads managed', ['daemon']),
    ovsClipped: gauge('ovs_clipped_threads', 'Threads that their cpuset holds on fewer CPUs than wanted', ['daemon']),
    ovsMoves: counter('ovs_thread_moves_total', 'Changes of a thread’s affinity', ['daemon']),
    ovsRefused: gauge('ovs_refused_threads', 'Threads that the kernel refused to move', ['daemon']),
    ovsMoveSeconds: new Histogram({
      name: 'plumbline_ovs_move_seconds',
      help: 'From hearing of a change of the assignments to the last thread moved',
      buckets: MOVE_BUCKETS,
      registers,
    }),
    vacateSeconds: new Histogram({
      name: 'plumbline_ovs_vacate_seconds',
      help: 'Time a container’s start waited for Open vSwitch to leave its CPUs',
      buckets: MOVE_BUCKETS,
      registers,
    }),
    reportWrites: counter('report_writes_total', 'Writes of the NodeTopology status', ['outcome']),
    heartbeats: counter('heartbeats_total', 'Renewals of the agent’s Lease', ['outcome']),
    dpuRenewals: counter('dpu_lease_renewals_total', 'Renewals of the DPU’s Lease', ['outcome']),
    registrations: counter('device_plugin_registrations_total', 'Registrations with the kubelet', [
      'resource',
      'outcome',
    ]),
    preStarts: counter('device_plugin_pre_starts_total', 'Container starts that waited for the agent', [
      'resource',
      'outcome',
    ]),
  };
}
