import type { Reason } from '../../diagnosis/reasons.ts';
import { AREAS, type Area, type DoctorFinding, type SharedCause } from './checks/finding.ts';

/** The most severe area is 0: what stops every VM, then what stops the VMs of a node, then the rest. */
const RANKS: Readonly<Record<Area, number>> = {
  preflight: 0,
  installed: 1,
  certificates: 2,
  webhook: 3,
  extender: 4,
  dpu: 5,
  agents: 6,
  pods: 7,
  kubelet: 8,
  networks: 9,
  interference: 10,
};

/** The cause of another cause, if both are found. */
const FOLLOWS: Partial<Readonly<Record<SharedCause, SharedCause>>> = { 'webhook-away': 'certificate' };

/** The states of VMs that follow from a cause. */
const STATE_OF: Partial<Readonly<Record<Reason, SharedCause>>> = {
  SchedulerAway: 'scheduler-away',
  ExtenderAway: 'extender-away',
  ExtenderNotAsked: 'not-routed',
  DPUNotReady: 'dpu-dead',
  NetworkLost: 'dpu-dead',
  AgentSilent: 'agent-away',
  NotReported: 'agent-away',
  MaskNotReported: 'agent-away',
  PinningNotReported: 'agent-away',
};

const ON_NODES: readonly SharedCause[] = ['agent-away', 'dpu-dead', 'bad-report'];

/** One finding for each cause with what follows from it, the most severe first. */
export function byCause(findings: readonly DoctorFinding[]): DoctorFinding[] {
  const ordered = [...findings].sort((a, b) => rank(a) - rank(b));
  const merged: DoctorFinding[] = [];
  for (const finding of ordered) {
    const at = merged.findIndex((root) => explains(root, finding, ordered));
    if (at < 0) merged.push(finding);
    else merged[at] = joined(merged[at]!, finding);
  }
  return merged.sort((a, b) => rank(a) - rank(b));
}

function rank({ severity, area, objects }: DoctorFinding): number {
  const many = Math.min(objects?.length ?? 1, 99) / 100;
  return (severity === 'error' ? 0 : AREAS.length) + RANKS[area] - many;
}

function explains(root: DoctorFinding, finding: DoctorFinding, all: readonly DoctorFinding[]): boolean {
  if (root.cause === undefined) return false;
  const cause = causeOf(finding, all);
  if (cause !== root.cause) return false;
  if (!ON_NODES.includes(cause)) return true;
  const nodes = finding.state?.nodes ?? finding.objects ?? [];
  return nodes.length > 0 && nodes.every((node) => root.objects?.includes(node));
}

function causeOf({ cause, state }: DoctorFinding, all: readonly DoctorFinding[]): SharedCause | undefined {
  if (cause === undefined) return state && STATE_OF[state.reason];
  const before = FOLLOWS[cause];
  return before !== undefined && all.some((finding) => finding.cause === before) ? before : cause;
}

function joined(root: DoctorFinding, finding: DoctorFinding): DoctorFinding {
  const { severity, what, consequences = [], objects, ...rest } = root;
  const meanwhile = root.meanwhile ?? finding.meanwhile;
  const all = [...new Set([...(objects ?? []), ...(finding.state === undefined ? (finding.objects ?? []) : [])])];
  return {
    ...rest,
    what,
    severity: finding.severity === 'error' ? 'error' : severity,
    consequences: [...consequences, finding.what],
    ...(meanwhile !== undefined && { meanwhile }),
    ...(all.length > 0 && { objects: all }),
  };
}
