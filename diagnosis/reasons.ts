/** `waiting`: continues without help or with room; `degraded`: runs not as promised; `broken`: needs someone to act. */
export type Verdict = 'ok' | 'stopped' | 'waiting' | 'degraded' | 'broken';

interface Row {
  readonly verdict: Verdict;
  readonly about: string;
}

const row = (verdict: Verdict, about: string): Row => ({ verdict, about });

/** The table of states: every reason in any output of Plumbline about a VM or pod. */
export const REASONS = {
  // Not meant to run, or ended.
  SwitchedOff: row('stopped', 'switched off'),
  Ended: row('stopped', 'ended by itself'),
  Deleting: row('stopped', 'being deleted'),

  // Without a launcher.
  NoInstance: row('broken', 'without an instance: KubeVirt has not created it'),
  NoLauncher: row('broken', 'without a launcher: KubeVirt has not created it'),
  WebhookUnavailable: row('broken', 'without a launcher: the webhook does not answer'),
  WebhookDenied: row('broken', 'without a launcher: the webhook denies it'),
  QuotaExceeded: row('broken', 'without a launcher: the quota of the namespace is used up'),
  LimitRangeExceeded: row('broken', 'without a launcher: larger than the LimitRange of the namespace allows'),
  LauncherDenied: row('broken', 'without a launcher: it was denied'),

  // A kubelet or the extender refused its launcher.
  UnalignedRejected: row('broken', 'rejected by the kubelet: no whole cores, and it does not opt in'),
  UnpaddedRejected: row('broken', 'rejected by the kubelet: opts in, but was not padded'),
  CoresTaken: row('waiting', 'rejected by the kubelet: another pod got the cores first'),
  TopologyRejected: row('broken', 'rejected by the kubelet: no NUMA nodes have all requested resources'),
  AdmissionRejected: row('waiting', 'rejected by the kubelet: another pod got a resource first'),
  EvictedBeforeStart: row('waiting', 'evicted before the start'),
  Failed: row('broken', 'failed'),

  // Waiting for a node.
  Gated: row('waiting', 'waiting because of scheduling gates'),
  SchedulerAway: row('broken', 'waiting for plumbline-scheduler, which has no leader'),
  ExtenderAway: row('broken', 'waiting for the extender, which does not answer'),
  NotTried: row('waiting', 'not tried by the scheduler yet'),
  NoNodeFits: row('waiting', 'waiting for a node that can take it'),
  RetryPending: row('waiting', 'waiting for the next attempt of the scheduler'),
  TooLarge: row('broken', 'larger than any empty node'),
  Nominated: row('waiting', 'waiting for resources on the nominated node'),
  WebhookMissed: row('broken', 'not seen by the webhook'),
  NotDecided: row('degraded', 'not seen by the webhook: nothing enforces the requested alignment'),
  ExtenderNotAsked: row('degraded', 'with a scheduler that does not call the extender'),
  OtherScheduler: row('waiting', 'with another scheduler'),
  SharedCpus: row('ok', 'without CPUs from the CPU manager'),

  // On a node, not started.
  Starting: row('waiting', 'starting'),
  ContainerWaiting: row('broken', 'on a node where a container does not start'),
  AllocationRefused: row('waiting', 'refused by the agent of the node'),
  PlaceLost: row('waiting', 'bound to a node that can no longer give the reserved CPUs'),
  CannotEvict: row('broken', 'unable to start, and the eviction fails'),

  // The guest is paused.
  PinningNotReported: row('broken', 'paused until the agent of the node reports'),
  PinningRefused: row('broken', 'paused: the agent of the node cannot apply the CPU mask'),
  AboutToResume: row('waiting', 'pinned, and not resumed yet by the extender'),
  NotResumed: row('broken', 'pinned, and not resumed by the extender for more than a minute'),
  Paused: row('stopped', 'paused'),

  // On a node, running or not.
  DPUNotReady: row('broken', 'on a node whose DPU is not ready'),

  NetworkLost: row('broken', 'running without a network since its DPU restarted'),

  // Running.
  Running: row('ok', 'running'),
  Aligned: row('ok', 'on dedicated CPUs, aligned as requested'),
  MaskApplied: row('ok', 'pinned by the CPU mask'),
  MaskFellBack: row('ok', 'pinned, with deviations from the CPU mask'),
  MaskNotApplied: row('degraded', 'running without the CPU mask'),
  MaskNotReported: row('degraded', 'running with a CPU mask that no agent reports on'),
  SplitCores: row('degraded', 'sharing cores with others'),
  NetworkElsewhere: row('degraded', 'running far from a network'),
  NetworkGone: row('degraded', 'on a node that has lost a network'),
  NetworkNotReported: row('degraded', 'running without affinity to a network that no node reported'),
  NetworkUnplaced: row('degraded', 'with a network whose NUMA node is unknown'),
  AgentSilent: row('degraded', 'on a node whose agent is silent'),
  NotReported: row('degraded', 'running on CPUs that no agent reports'),
  RestartRequired: row('degraded', 'running without changes that need a restart'),
  ChangePending: row('waiting', 'running without changes that need a migration'),

  // Running, and migrating.
  Migrating: row('ok', 'migrating'),
  MigrationWaits: row('waiting', 'running, with a migration that waits'),
  MigrationFailed: row('ok', 'running after a migration that failed'),
} as const satisfies Readonly<Record<string, Row>>;

export type Reason = keyof typeof REASONS;

export const VERDICTS: readonly Verdict[] = ['ok', 'stopped', 'waiting', 'degraded', 'broken'];

/** The most important of several facts: the worst verdict; the first of equal ones. */
export function worst<T extends { readonly reason: Reason }>(facts: readonly T[]): T | undefined {
  const badness = ({ reason }: T) => VERDICTS.indexOf(REASONS[reason].verdict);
  return facts.reduce<T | undefined>((a, b) => (a === undefined || badness(b) > badness(a) ? b : a), undefined);
}
