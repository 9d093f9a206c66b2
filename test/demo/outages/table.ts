/**
 * What an operator sees when a part of Plumbline is killed: one table for the demo and for a real control plane. An absent cell
 * means that this output does not name the part.
 */
export interface Outage {
  readonly part: 'console' | 'dpu' | 'agents' | 'extender' | 'webhook';
  /** Duration of the Lease of the part, or of its readiness probe. */
  readonly seconds: number;
  /** `plumbline doctor`, and its exit status. */
  readonly doctor: RegExp;
  readonly status: 0 | 1;
  /** The first line of `plumbline status`. */
  readonly statusLine?: RegExp;
  /** A VM with whole cores, which is created when the part is dead or runs before, and `plumbline explain` about it. */
  readonly vm?: { readonly name: string; readonly node?: string; readonly runsBefore?: true };
  readonly explain?: RegExp;
  readonly condition?: {
    readonly node: string;
    readonly type: string;
    readonly status: string;
    readonly reason: string;
  };
  readonly event?: { readonly reason: string; readonly message: RegExp };
  /** A line of the extender's log. */
  readonly log?: RegExp;
  /** Whether a VM that asks for nothing of Plumbline starts while the part is dead. */
  readonly plainVmStarts: boolean;
}

/** In the order in which the parts are killed. Only the DPU's process is started again, before the next part is killed. */
export const OUTAGES: readonly Outage[] = [
  { part: 'console', seconds: 0, doctor: /no problems found/, status: 0, plainVmStarts: true },
  {
    part: 'dpu',
    seconds: 3,
    doctor: /✘ dpu: dpu: /,
    status: 1,
    statusLine: /the DPU of dpu \(the DPU is dead/,
    vm: { name: 'needs-dpu', node: 'dpu' },
    explain: /DPU not ready: dead, last renewal \d+ s ago/,
    condition: { node: 'dpu', type: 'plumbline.dev/DPUReady', status: 'False', reason: 'LeaseExpired' },
    event: { reason: 'DPUNotReady', message: /^DPU Not Ready: its lease ovn-dpu-dpu/ },
    log: /"node":"dpu".*"ready":false|"ready":false.*"node":"dpu"/,
    plainVmStarts: true,
  },
  {
    part: 'agents',
    seconds: 40,
    doctor: /✘ agents: 2 agents silent: dpu, smt2/,
    status: 1,
    statusLine: /the agent on dpu, smt2 \(silent\)/,
    vm: { name: 'has-silent-agent', node: 'smt2', runsBefore: true },
    explain: /on smt2, whose\s+agent\s+has\s+stopped\s+reporting/,
    condition: { node: 'smt2', type: 'plumbline.dev/AgentReady', status: 'False', reason: 'LeaseExpired' },
    event: { reason: 'AgentNotReady', message: /Lease/ },
    log: /"node":"smt2".*agent is silent/,
    plainVmStarts: true,
  },
  {
    part: 'extender',
    seconds: 5,
    doctor: /✘ extender: the extender in pod plumbline-scheduler-\S+ does not answer/,
    status: 1,
    statusLine: /plumbline-scheduler \(no replica is ready\)/,
    vm: { name: 'needs-extender' },
    explain: /the extender in pod plumbline-scheduler-\S+\s+did\s+not\s+answer/,
    event: { reason: 'FailedScheduling', message: /127\.0\.0\.1:\d+.*(?:ECONNREFUSED|connection refused)/ },
    plainVmStarts: false,
  },
  {
    part: 'webhook',
    seconds: 5,
    doctor: /✘ webhook: no replica of plumbline-webhook is ready/,
    status: 1,
    statusLine: /plumbline-webhook \(no replica is ready\)/,
    vm: { name: 'needs-webhook' },
    explain: /failed\s+calling\s+webhook\s+"launcher\.plumbline\.dev"/,
    event: { reason: 'FailedCreate', message: /failed calling webhook "launcher\.plumbline\.dev"/ },
    plainVmStarts: true,
  },
];
