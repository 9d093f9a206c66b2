import { alignedCpus } from '../../model/alignment.ts';
import { CpuSet, unionOf } from '../../model/cpu-set.ts';
import { createHost } from '../../model/host.ts';
import { createKubelet } from '../../model/kubelet/kubelet.ts';
import { type PlacementNeeds, preparedHost } from '../../model/placement/needs.ts';
import { judgeHost } from '../../model/placement/verdict.ts';
import {
  coresOf,
  guestCpusOf,
  memoryFits,
  type NovaCell,
  type NovaGuest,
  reportOf,
  threadsOf,
} from './nova-vswitch.ts';
import { type Adapter, collect, differs, Skip, type Verdict } from './outcome.ts';

interface PinningCase {
  readonly id: string;
  readonly name: string;
  readonly kind: 'fit' | 'account';
  readonly hostCells: readonly NovaCell[];
  readonly request: {
    readonly guestCells: readonly NovaGuest[];
    readonly emulatorThreads?: string | null;
    /** CPUs for an isolated emulator thread; 1 if not said. */
    readonly reservedCpus?: number;
    readonly limits?: { readonly ramAllocationRatio: number };
    readonly op?: 'consume' | 'release';
  };
  readonly expected: {
    readonly fits?: boolean;
    readonly cells?: readonly { readonly hostCell: number; readonly pins: Readonly<Record<string, number>> }[];
    readonly pinned?: Readonly<Record<string, readonly number[]>>;
  };
}

/** In nova-pinning-generated.json: one host cell, one guest. */
interface GeneratedCase {
  readonly hostCell: NovaCell;
  readonly vcpus: number;
  readonly threadPolicy: string | null;
  readonly emulatorThreads: string | null;
  readonly expected: { readonly fits: boolean };
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
 * 5. Counts that are no whole cores are padded before they are placed; shared vCPUs are not placed at all.
 */
export const run: Adapter = (content) =>
  collect(
    (content as (PinningCase | GeneratedCase)[]).map((item, index) =>
      'hostCell' in item ? pinningCaseOf(item, index) : item,
    ),
    (item) => `${item.id} ${item.name}`,
    (item) => (item.kind === 'account' ? account(item) : fitsAsExpected(item)),
  );

function pinningCaseOf(
  { hostCell, vcpus, threadPolicy, emulatorThreads, expected }: GeneratedCase,
  index: number,
): PinningCase {
  const dedicatedVcpus = Array.from({ length: vcpus }, (_, vcpu) => vcpu);
  const guest = { cpuPolicy: 'dedicated', memoryMiB: 0, threadPolicy, dedicatedVcpus };
  const request = { guestCells: [guest], emulatorThreads };
  const name = `${vcpus} vCPUs, ${threadPolicy ?? 'no'} policy`;
  return { id: `#${index}`, name, kind: 'fit', hostCells: [hostCell], request, expected: { fits: expected.fits } };
}

/** Compares one fit. */
function fitsAsExpected({ hostCells, request, expected }: PinningCase): Verdict {
  const { guestCells: guests, emulatorThreads, limits } = request;
  const left = leftOut(guests);
  if (left) return left;
  const [guest, ...more] = guests;
  if (guest === undefined || more.length > 0) {
    return new Skip('guests of several cells: KubeVirt makes them from the CPUs that the kubelet assigned');
  }
  if (hostCells.some((cell) => !memoryFits(guest, cell, limits?.ramAllocationRatio))) {
    return new Skip('memory of a cell: the subject of the kubelet vectors');
  }
  const threads = threadsOf(hostCells);
  if (hostCells.some((cell) => coresOf(cell).some((core) => core.size !== threads))) {
    return new Skip('intended difference: no whole cores are promised where the kubelet sees cores of different size');
  }
  if (vcpusOf(guest) % threads !== 0 || vcpusOf(guest) % 2 !== 0) {
    return new Skip('odd counts: a guest is padded to whole cores before it is placed');
  }
  // An isolated emulator thread takes one more CPU near the guest; in whole cores, that is one core more.
  const emulator = emulatorThreads === 'isolate' ? (request.reservedCpus ?? 1) : 0;
  const cpus = alignedCpus(vcpusOf(guest) + emulator, threads);
  const verdict = judgeHost(needsOf(cpus), preparedHost(reportOf(hostCells)), [], 'refuse');
  const wrong = verdict.fits ? unsound(verdict.cpus ?? CpuSet.EMPTY, hostCells, cpus) : undefined;
  return wrong ?? compare(guest, verdict.fits, expected.fits ?? false, threads);
}

function needsOf(cpus: number): PlacementNeeds {
  const compute = { name: 'compute', kind: 'app', cpus, devices: new Map(), memory: new Map() } as const;
  return { request: { uid: 'guest', guaranteed: true, containers: [compute] }, networks: [], wholeCores: true };
}

function compare({ threadPolicy }: NovaGuest, fits: boolean, novaFits: boolean, threads: number): Verdict {
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
  if (cpus.intersects(CpuSet.of([...cell.pinned]))) return `CPUs ${cpus} are not all free`;
  const whole = unionOf(coresOf(cell).filter((core) => core.intersects(cpus)));
  if (!whole.equals(cpus)) return `CPUs ${cpus} are not whole cores`;
  return differs(cpus.size, requested);
}

function leftOut(guests: readonly NovaGuest[]): Skip | undefined {
  const policies = new Set(guests.map(({ cpuPolicy }) => cpuPolicy));
  if (policies.has('mixed')) return new Skip('mixed guests: a launcher has all of its CPUs exclusive, or none');
  const onlyShared = guests.some((guest) => vcpusOf(guest) === 0);
  if (policies.has('shared') || onlyShared) return new Skip('shared guests run on the shared pool and are not placed');
  return undefined;
}

function vcpusOf(guest: NovaGuest): number {
  return guest.dedicatedVcpus?.length ?? 0;
}

/**
 * Consuming and releasing pins is what the kubelet's own state does: a guest is a pod that owns CPUs, and what is
 * pinned is what has left the shared pool.
 */
function account({ hostCells, request, expected }: PinningCase): Verdict {
  const host = createHost({
    cells: hostCells.map((cell) => ({ id: cell.id, cpus: `${unionOf(coresOf(cell))}` })),
    cores: hostCells.flatMap((cell) => coresOf(cell).map((core) => `${core}`)),
  });
  const kubelet = createKubelet({
    version: 'v1.36.0',
    host,
    cpuManager: { policy: 'static' },
    reserved: CpuSet.EMPTY,
  });
  if ('unpredictable' in kubelet) return kubelet.unpredictable;
  const guest = unionOf(request.guestCells.map((cell) => ownedBy(cell, hostCells, host)));
  const pinned = CpuSet.of(hostCells.flatMap((cell) => [...cell.pinned]));
  const others = pinned.minus(guest);
  const state = kubelet.initialState(
    new Map(),
    new Map([
      ['others', new Map([['compute', others]])],
      ['guest', new Map([['compute', guest]])],
    ]),
  );
  const after = request.op === 'consume' ? state : kubelet.remove(state, 'guest');
  const now = host.online.minus(after.defaultSet);
  const byCell = Object.fromEntries(host.cells.map(({ id, cpus }) => [id, now.intersect(cpus).toArray()]));
  return differs(byCell, expected.pinned);
}

function ownedBy(guest: NovaGuest, cells: readonly NovaCell[], host: ReturnType<typeof createHost>): CpuSet {
  const pins = CpuSet.of([...Object.values(guest.pins ?? {})]);
  const emulator = CpuSet.of([...(guest.emulatorCpus ?? [])]);
  const cell = CpuSet.of([...(cells.find(({ id }) => id === guest.hostCell)?.dedicatedCpus ?? [])]);
  // `isolate` owns the siblings as well, as far as they are dedicated.
  const owned =
    guest.threadPolicy === 'isolate'
      ? unionOf(host.cores.filter((core) => core.intersects(pins))).intersect(cell)
      : pins;
  return owned.union(emulator);
}
