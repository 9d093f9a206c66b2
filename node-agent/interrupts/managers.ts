import { join } from 'node:path';
import type { KnobDeps, KnobKind } from './knobs.ts';

/** Another program that decides where work of the kernel runs. */
export interface Manager {
  readonly name: string;
  /** What the agent leaves to it, for display. */
  readonly leaves: string;
  readonly kinds: readonly KnobKind[];
}

export interface ManagersDeps extends Pick<KnobDeps, 'files' | 'procRoot'> {
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

const WORDS: Partial<Record<KnobKind, string>> = {
  irq: 'interrupts',
  default: 'the mask of new interrupts',
  kthread: 'kernel threads',
};

/** Reads files and the names of all processes: a tenth of a second on a large machine. */
export function findManagers({ files, procRoot, etcRoot }: ManagersDeps): Manager[] {
  const profile = files.readOnce(join(etcRoot, 'tuned/active_profile')) ?? '';
  const isPerformance = PERFORMANCE_PROFILE.test(profile);
  const isCrio = !isPerformance && files.readOnce(join(etcRoot, 'sysconfig/orig_irq_banned_cpus')) !== undefined;
  const pids = files.list(procRoot).filter((name) => /^\d+$/.test(name));
  const names = new Set(pids.map((pid) => files.readOnce(join(procRoot, pid, 'comm'))));
  const managers: (Omit<Manager, 'leaves'> & { readonly isPresent: boolean })[] = [
    { name: `tuned (${profile})`, isPresent: ISOLATING_PROFILE.test(profile), kinds: ['irq', 'default', 'kthread'] },
    { name: `PerformanceProfile (${profile})`, isPresent: isPerformance, kinds: ['default', 'kthread'] },
    { name: 'CRI-O (irq-load-balancing.crio.io)', isPresent: isCrio, kinds: ['default'] },
    { name: 'nri-plugins', isPresent: names.has(NRI_POLICY), kinds: ['irq'] },
    { name: IRQBALANCE, isPresent: names.has(IRQBALANCE), kinds: [] },
  ];
  return managers
    .filter(({ isPresent }) => isPresent)
    .map(({ name, kinds }) => {
      const leaves = kinds.map((kind) => WORDS[kind]).join(', ') || 'interrupts on CPUs without an owner';
      return { name, leaves, kinds };
    });
}
