import type { CpuSet } from '../../model/cpu-set.ts';
import type { MissingDaemon } from '../open-vswitch/daemons.ts';
import type { AgentMetrics } from '../telemetry/metrics.ts';
import type { PassResult } from './process-affinity.ts';

export interface AffinityProblem {
  /** `pidfile-absent`, `clipped`, `EINVAL`, …: one of a few values, the same for every node. */
  readonly cause: string;
  readonly text: string;
}

export const textsOf = (problems: readonly AffinityProblem[]): string[] => problems.map(({ text }) => text);

export function notManaged({ name, code, message }: MissingDaemon): AffinityProblem {
  return { cause: `pidfile-${code}`, text: `${name} is not managed: ${message}` };
}

/** What the kernel did not do, or not show, of the threads of a daemon. */
export function refusals(name: string, results: readonly PassResult[]): AffinityProblem[] {
  const { clipped, errors } = sumOf(results);
  const problems = [...new Set(errors)].map((cause) => {
    const count = errors.filter((code) => code === cause).length;
    return { cause, text: `${name}: the kernel refused ${count} threads: ${cause}` };
  });
  if (clipped > 0) {
    const text = `${name}: its cpuset confines ${clipped} threads to fewer CPUs than intended`;
    problems.push({ cause: 'clipped', text });
  }
  const unreadable = new Set(results.flatMap((result) => result.unreadable ?? []));
  return [...problems, ...[...unreadable].map((text) => notReadable(name, text))];
}

/** Its threads stay managed as they were last seen. */
export function notReadable(name: string, why: string): AffinityProblem {
  return { cause: 'unreadable', text: `${name}: its threads cannot be read: ${why}` };
}

export function noFreeCpu(only: CpuSet): AffinityProblem {
  const why = only.isEmpty ? 'no CPU is free' : `none of the free CPUs (${only.brief}) is on this machine`;
  return { cause: 'no-cpu', text: `${why}; the threads stay where they are` };
}

export const FOREIGN_WRITER = 'foreign-writer';

/** Another process writes the same masks. The kernel does not report which one. */
export function foreignWriter(enablerFile: string): AffinityProblem {
  const text =
    'another process also sets the CPUs of Open vSwitch’s threads. Until it stops, the agent only moves threads off owned CPUs. ' +
    `ovnkube-node does this if ${enablerFile} is not empty: turn one of the two off, or use --ovs-enabler`;
  return { cause: FOREIGN_WRITER, text };
}

/** Poll mode drivers run where their mask puts them, even on CPUs that the kubelet assigns. */
export function pollsOwned(cpus: CpuSet): AffinityProblem[] {
  if (cpus.isEmpty) return [];
  const text = `poll mode drivers run on CPUs ${cpus.brief}, which containers own: reserve the CPUs of pmd-cpu-mask (reservedSystemCPUs)`;
  return [{ cause: 'pmd-on-owned', text }];
}

export function recordPass(metrics: AgentMetrics, daemon: string, results: readonly PassResult[]) {
  const { threads, clipped, errors, displaced, moved } = sumOf(results);
  metrics.ovsThreads.set({ daemon }, threads);
  metrics.ovsClipped.set({ daemon }, clipped);
  metrics.ovsRefused.set({ daemon }, errors.length);
  if (displaced > 0) metrics.ovsDisplaced.inc({ daemon }, displaced);
  if (moved === 0) return;
  metrics.ovsMoves.inc({ daemon }, moved);
  metrics.ovsLastChange.set({ daemon }, Date.now() / 1000);
}

export function sumOf(results: readonly PassResult[]) {
  const sum = (field: 'threads' | 'moved' | 'displaced' | 'clipped') =>
    results.reduce((total, result) => total + result[field], 0);
  return {
    threads: sum('threads'),
    moved: sum('moved'),
    displaced: sum('displaced'),
    clipped: sum('clipped'),
    errors: results.flatMap(({ errors }) => errors),
  };
}
