import { join } from 'node:path';
import type { KernelIo, KnobKind } from './knobs.ts';

/** Another program that decides where work of the kernel runs. */
export interface Manager {
  readonly name: string;
  /** What the agent leaves to it, for display. */
  readonly leaves: string;
  readonly kinds: readonly KnobKind[];
}

export interface ManagersDeps {
  readonly files: KernelIo;
  readonly procRoot: string;
  /** The host's /etc. */
  readonly etcRoot: string;
}

/** Profiles of tuned that isolate CPUs once, when tuned starts, and restore their own snapshot when it stops. */
const ISOLATING_PROFILE = /^(?:cpu-partitioning|realtime)/;
/** The profile of a PerformanceProfile (OpenShift's Node Tuning Operator), which CRI-O completes for each container. */
const PERFORMANCE_PROFILE = /^openshift-node-performance/;
export const IRQBALANCE = 'irqbalance';
/** A process name has 15 characters: nri-resource-policy-balloons and -topology-aware. */
const NRI_POLICY = 'nri-resource-po';

/** Reads files and the names of all processes: a tenth of a second on a large machine. */
export function findManagers({ files, procRoot, etcRoot }: ManagersDeps): Manager[] {
  const managers: Manager[] = [];
  const profile = files.readOnce(join(etcRoot, 'tuned/active_profile')) ?? '';
  if (ISOLATING_PROFILE.test(profile)) {
    const leaves = 'interrupts, the mask of new interrupts, kernel threads';
    managers.push({ name: `tuned (${profile})`, leaves, kinds: ['irq', 'default', 'kthread'] });
  }
  if (PERFORMANCE_PROFILE.test(profile)) {
    const leaves = 'the mask of new interrupts, kernel threads';
    managers.push({ name: `PerformanceProfile (${profile})`, leaves, kinds: ['default', 'kthread'] });
  } else if (files.readOnce(join(etcRoot, 'sysconfig/orig_irq_banned_cpus')) !== undefined) {
    const name = 'CRI-O (irq-load-balancing.crio.io)';
    managers.push({ name, leaves: 'the mask of new interrupts', kinds: ['default'] });
  }
  const pids = files.list(procRoot).filter((name) => /^\d+$/.test(name));
  const names = new Set(pids.map((pid) => files.readOnce(join(procRoot, pid, 'comm'))));
  if (names.has(NRI_POLICY)) managers.push({ name: 'nri-plugins', leaves: 'interrupts', kinds: ['irq'] });
  if (names.has(IRQBALANCE)) {
    managers.push({ name: IRQBALANCE, leaves: 'interrupts on CPUs without an owner', kinds: [] });
  }
  return managers;
}
