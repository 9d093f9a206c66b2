import { alignedCpus } from '../../model/alignment.ts';
import { CpuSet, unionOf } from '../../model/cpu-set.ts';
import { type PlacementNeeds, preparedHost } from '../../model/placement/needs.ts';
import { judgeHost } from '../../model/placement/verdict.ts';
import { coresOf, guestCpusOf, type NovaCell, reportOf } from './nova-vswitch.ts';
import { type Adapter, differs, type Verdict } from './outcome.ts';

/** A guest of one cell, whose CPUs are whole cores of a host with cores of one size. */
interface PinningCase {
  readonly name: string;
  readonly hostCells: readonly NovaCell[];
  readonly vcpus: number;
  readonly threadPolicy: string | null;
  readonly emulatorThreads: string | null;
  /** CPUs for an isolated emulator thread; 1 if not said. */
  readonly reservedCpus?: number;
  readonly fits: boolean;
}

/**
 * The extender is asked whether a node with these host cells fits the guest, in whole cores, inside one NUMA node. Where
 * it and Nova's CPU pinning are meant to differ:
 *
 * 1. Nova without a thread policy, with `prefer` or with `require` may share a core between guests; whole cores never.
 *    So it may fit where whole cores do not. What whole cores fit, it must fit.
 * 2. Nova's `require` refuses hosts without SMT; whole cores of one thread are whole cores.
 * 3. Nova's `isolate` gives each vCPU a core of its own and leaves its siblings idle; whole cores use all threads. So
 *    whole cores fit wherever `isolate` does, and elsewhere too.
 * 4. Of several equal cores either may take any, so that the CPUs are compared by number, and that they lie in one cell,
 *    are free and are whole cores.
 * 5. Counts that are no whole cores are padded before they are placed; shared vCPUs and hosts with cores of different
 *    sizes are not placed at all. Nova's cases of these are left out, and so are those of guests of several cells, which
 *    KubeVirt makes from the CPUs that the kubelet assigned.
 */
export const run: Adapter = (content) =>
  (content as PinningCase[]).map((one) => ({ name: one.name, check: () => check(one) }));

function check({ hostCells, vcpus, threadPolicy, emulatorThreads, reservedCpus = 1, fits }: PinningCase): Verdict {
  const threads = Math.max(1, ...hostCells.flatMap(coresOf).map((core) => core.size));
  // An isolated emulator thread takes one more CPU near the guest; in whole cores, that is one core more.
  const cpus = alignedCpus(vcpus + (emulatorThreads === 'isolate' ? reservedCpus : 0), threads);
  const verdict = judgeHost(needsOf(cpus), preparedHost(reportOf(hostCells)), [], 'refuse');
  const wrong = verdict.fits ? unsound(verdict.cpus ?? CpuSet.EMPTY, hostCells, cpus) : undefined;
  return wrong ?? compare(threadPolicy, verdict.fits, fits, threads);
}

function needsOf(cpus: number): PlacementNeeds {
  const compute = { name: 'compute', kind: 'app', cpus, devices: new Map(), memory: new Map() } as const;
  return { request: { uid: 'guest', guaranteed: true, containers: [compute] }, networks: [], wholeCores: true };
}

function compare(threadPolicy: string | null, fits: boolean, novaFits: boolean, threads: number): Verdict {
  if (fits === novaFits) return undefined;
  if (threadPolicy === 'isolate') return fits ? undefined : 'isolate fits where whole cores do not';
  if (!fits) return undefined;
  if (threadPolicy === 'require' && threads === 1) return undefined;
  return 'whole cores fit where Nova refuses';
}

/** The CPUs are free whole cores of one cell, and as many as requested. */
function unsound(cpus: CpuSet, cells: readonly NovaCell[], requested: number): Verdict {
  const cell = cells.find((one) => cpus.isSubsetOf(guestCpusOf(one)));
  if (cell === undefined) return `CPUs ${cpus} are not in one cell`;
  if (cpus.intersects(CpuSet.of(cell.pinned))) return `CPUs ${cpus} are not all free`;
  const whole = unionOf(coresOf(cell).filter((core) => core.intersects(cpus)));
  if (!whole.equals(cpus)) return `CPUs ${cpus} are not whole cores`;
  return differs(cpus.size, requested);
}
