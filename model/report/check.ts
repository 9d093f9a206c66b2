import * as z from 'zod';
import { PlumblineError } from '../errors.ts';
import type { Host } from '../host.ts';

/**
 * A node's report decides for others as well: how far a VM is padded that may go there, and which networks a cluster
 * has. So it is held against what the API server knows of that node from another source, its Node object. A report that
 * contradicts it, or cannot be read, is quarantined: it counts as if the node did not report, until it is corrected.
 */
export interface ReportFault {
  /** Stable; labels a metric. */
  readonly code: 'contradiction' | 'unknown-format' | 'more-cpus' | 'threads-per-core';
  /** For people; bounded, whatever the report says. */
  readonly message: string;
}

/** What a Node object says of the machine. */
export interface NodeFacts {
  /** status.capacity.cpu: CPUs that the kubelet counts. Undefined: not known. */
  readonly cpus?: number | undefined;
  /** The label kubernetes.io/arch. */
  readonly arch?: string | undefined;
}

/** Hardware threads of one core that processors of an architecture have at most. */
const MOST_THREADS: Readonly<Record<string, number>> = { amd64: 2, arm64: 4, ppc64le: 8, riscv64: 4, s390x: 2 };
/** What processors commonly have; more is looked at closer where the architecture is not known. */
const COMMON_THREADS = 2;
const LONGEST_MESSAGE = 256;
/** Nodes that have to agree before another stands alone. */
const LEAST_OTHERS = 2;

/** What a report that cannot be read is quarantined for. @param error what reading it ended with */
export function faultOfError(error: unknown): ReportFault {
  const format = error instanceof z.ZodError ? error.issues.find(({ path }) => path[0] === 'format') : undefined;
  if (format !== undefined) {
    const message = `the report ${format.message}: upgrade webhook and extender, then the agents`;
    return { code: 'unknown-format', message: message.slice(0, LONGEST_MESSAGE) };
  }
  const said = error instanceof PlumblineError || error instanceof RangeError ? error.message : 'it cannot be read';
  return { code: 'contradiction', message: `the report contradicts itself: ${said}`.slice(0, LONGEST_MESSAGE) };
}

/** Why a report cannot be true of its node, or undefined. Fewer CPUs than the node has harm the node alone. */
export function checkReport(
  { online, threadsPerCore }: Pick<Host, 'online' | 'threadsPerCore'>,
  node: NodeFacts | undefined,
): ReportFault | undefined {
  const { cpus, arch } = node ?? {};
  if (cpus !== undefined && online.size > cpus) {
    return {
      code: 'more-cpus',
      message: `the report has ${online.size} CPUs, and the Node's capacity is ${cpus}: restart the kubelet if CPUs were added`,
    };
  }
  const most = arch === undefined ? undefined : MOST_THREADS[arch];
  if (most === undefined || threadsPerCore <= most) return undefined;
  return {
    code: 'threads-per-core',
    message: `the report has ${threadsPerCore} threads per core, and processors of architecture ${arch} have at most ${most}`,
  };
}

/** A report by what is compared among nodes. */
export interface ComparedReport {
  readonly threadsPerCore: number;
  readonly arch?: string | undefined;
}

/**
 * Reports that no architecture vouches for and that stand alone: more than two threads per core, where all other nodes,
 * and there are several, agree on a smaller number.
 */
export function outliers<K>(reports: ReadonlyMap<K, ComparedReport>): Map<K, ReportFault> {
  const counts = new Map<number, number>();
  for (const { threadsPerCore } of reports.values()) counts.set(threadsPerCore, (counts.get(threadsPerCore) ?? 0) + 1);
  const found = new Map<K, ReportFault>();
  for (const [key, { threadsPerCore, arch = '' }] of reports) {
    if (threadsPerCore <= COMMON_THREADS || MOST_THREADS[arch] !== undefined) continue;
    const [other, ...more] = [...counts.keys()].filter((threads) => threads !== threadsPerCore);
    const agree = counts.get(threadsPerCore) === 1 && other !== undefined && more.length === 0;
    if (!agree || other > threadsPerCore || reports.size < LEAST_OTHERS + 1) continue;
    const message = `the report has ${threadsPerCore} threads per core, all ${reports.size - 1} other nodes have ${other}, and the Node has no label kubernetes.io/arch that explains it`;
    found.set(key, { code: 'threads-per-core', message });
  }
  return found;
}
