import { parseQuantity, wholeValue } from '../quantity.ts';
import type { VmiShape } from '../shapes.ts';

/** KubeVirt's own later fix: two CPUs for the emulator thread if one would result in an odd number. */
export const EVEN_PARITY_ANNOTATION = 'alpha.kubevirt.io/EmulatorThreadCompleteToEvenParity';

type LauncherCpus = Readonly<Record<'vcpus' | 'ioThreads' | 'emulator' | 'total', number>>;

/** The product of its fields is the number of vCPUs. */
export type GuestTopology = Readonly<Record<'sockets' | 'cores' | 'threads', number>>;

/** Unset fields are 1; without any, sockets are the CPU limit, else the request. @throws ParseError for these */
export function guestTopology(vmi: Pick<VmiShape, 'spec'>): GuestTopology {
  const { cores, sockets, threads } = vmi.spec.domain.cpu ?? {};
  if (cores || sockets || threads) return { sockets: sockets || 1, cores: cores || 1, threads: threads || 1 };
  const { limits, requests } = vmi.spec.domain.resources ?? {};
  const cpu = limits?.cpu ?? requests?.cpu;
  return { sockets: cpu === undefined ? 1 : Math.max(1, wholeValue(parseQuantity(cpu))), cores: 1, threads: 1 };
}

/** @throws ParseError as guestTopology */
export function guestVcpus(vmi: Pick<VmiShape, 'spec'>): number {
  const { sockets, cores, threads } = guestTopology(vmi);
  return sockets * cores * threads;
}

/**
 * The CPUs that KubeVirt requests for a launcher with dedicated CPUs: guest, each supplemental IO thread, emulator.
 * With the even-parity annotation it counts a supplemental pool's IO threads twice, so an odd pool results in an odd
 * number: this reproduces that. Source: KubeVirt 1.7 to 1.9, pkg/virt-controller/services/renderresources.go,
 * template.go. @throws ParseError
 */
export function launcherCpus(vmi: VmiShape): LauncherCpus {
  const ioThreads = supplementalThreads(vmi);
  return cpusByPurpose(vmi, ioThreads, ioThreads + pinnedIoThreads(vmi));
}

/**
 * The CPUs that virt-launcher pins threads to; it fails with fewer in its cpuset. IO threads count once, and only under
 * supplementalPool; KubeVirt 1.7 and 1.8 take no CPU for them.
 * Source: KubeVirt 1.9, pkg/virt-launcher/virtwrap/converter/vcpu. @throws ParseError as guestTopology
 */
export function pinnedCpus(vmi: VmiShape): LauncherCpus {
  const ioThreads = pinnedIoThreads(vmi);
  return cpusByPurpose(vmi, ioThreads, ioThreads);
}

function supplementalThreads(vmi: VmiShape): number {
  return vmi.spec.domain.ioThreads?.supplementalPoolThreadCount ?? 0;
}

function pinnedIoThreads(vmi: VmiShape): number {
  return vmi.spec.domain.ioThreadsPolicy === 'supplementalPool' ? supplementalThreads(vmi) : 0;
}

/** @param counted IO threads that count for the parity of the emulator's CPUs */
function cpusByPurpose(vmi: VmiShape, ioThreads: number, counted: number): LauncherCpus {
  const vcpus = guestVcpus(vmi);
  const isEvenParity = vmi.metadata.annotations?.[EVEN_PARITY_ANNOTATION] !== undefined;
  const isolated = isEvenParity && (vcpus + counted) % 2 === 0 ? 2 : 1;
  const emulator = vmi.spec.domain.cpu?.isolateEmulatorThread === true ? isolated : 0;
  return { vcpus, ioThreads, emulator, total: vcpus + ioThreads + emulator };
}

/** The effect of nodes without SMT on a guest with threads, for messages. */
export const withoutThreads = (threads = 1): string =>
  `its guest has ${threads} threads per core, which are separate cores on nodes without SMT`;
