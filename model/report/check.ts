import * as z from 'zod';
import { countText, cpusText } from '../amounts.ts';
import { cut, PlumblineError } from '../errors.ts';
import type { Host } from '../host.ts';
import type { HostReport, ReportedDevices } from '../kubelet/host-report.ts';
import { bytesText } from '../quantity.ts';

/**
 * A report affects other nodes: the padding of VMs, and the networks of the cluster. One that contradicts its Node, or
 * that cannot be parsed, is in quarantine: the node counts as one without a report.
 */
export interface ReportFault {
  /** Stable; a metric label. */
  readonly code: 'contradiction' | 'unknown-format' | 'more-cpus' | 'more-devices' | 'threads-per-core';
  /** With limited length whatever the report contains. */
  readonly message: string;
}

export interface NodeFacts {
  /** status.capacity.cpu: number of CPUs that the kubelet counts. Undefined: unknown. */
  readonly cpus?: number | undefined;
  /** Devices in status.capacity by resource. Undefined: unknown. */
  readonly capacity?: ReadonlyMap<string, number> | undefined;
  readonly arch?: string | undefined;
}

const MAX_THREADS: Readonly<Record<string, number>> = { amd64: 2, arm64: 4, ppc64le: 8, riscv64: 4, s390x: 2 };
const MAX_MESSAGE_CHARACTERS = 256;

/** @param error the error of the parser */
export function faultOfError(error: unknown): ReportFault {
  const format = error instanceof z.ZodError ? error.issues.find(({ path }) => path[0] === 'format') : undefined;
  if (format !== undefined) {
    const message = `the report ${format.message}: upgrade webhook and extender, then the agents`;
    return { code: 'unknown-format', message: message.slice(0, MAX_MESSAGE_CHARACTERS) };
  }
  const reason = error instanceof PlumblineError || error instanceof RangeError ? error.message : 'it cannot be read';
  return {
    code: 'contradiction',
    message: `the report contradicts itself: ${reason}`.slice(0, MAX_MESSAGE_CHARACTERS),
  };
}

/**
 * Fewer CPUs than the node has only affect the node itself. Devices count from the first report: agents report none
 * until the Node has them all, and a kubelet that restarts writes a capacity of 0, which contradicts no report.
 */
export function checkReport(
  { online, threadsPerCore }: Pick<Host, 'online' | 'threadsPerCore'>,
  node: NodeFacts | undefined,
  devices: readonly Pick<ReportedDevices, 'resource' | 'groups'>[] = [],
): ReportFault | undefined {
  const { cpus, arch, capacity } = node ?? {};
  if (cpus !== undefined && online.size > cpus) {
    return {
      code: 'more-cpus',
      message: `the report has ${cpusText(online.size)}, and the Node's capacity is ${cpus}: restart the kubelet if CPUs were added`,
    };
  }
  for (const { resource, groups } of capacity === undefined ? [] : devices) {
    const count = groups.reduce((sum, { total }) => sum + total, 0);
    const limit = capacity?.get(resource) ?? 0;
    if (count <= limit || (limit === 0 && capacity?.has(resource))) continue;
    const message = `the report has ${countText(count, 'device')} of ${resource}, and the Node's capacity is ${limit}: check the agent`;
    return { code: 'more-devices', message: message.slice(0, MAX_MESSAGE_CHARACTERS) };
  }
  const most = arch === undefined ? undefined : MAX_THREADS[arch];
  if (most === undefined || threadsPerCore <= most) return undefined;
  return {
    code: 'threads-per-core',
    message: `the report has ${threadsPerCore} threads per core, and processors of architecture ${arch} have at most ${most}`,
  };
}

const MAX_RESOURCE_CHARACTERS = 256;

/** For people: `NUMA 0: 3 of 4 free`. */
export function freeResources({ devices = [], memoryManager }: Pick<HostReport, 'devices' | 'memoryManager'>) {
  const parts = devices.flatMap(({ resource, groups }) =>
    groups.map(({ cells, total, free }) => [resource, `${cells ? `NUMA ${cells}: ` : ''}${free} of ${total} free`]),
  );
  const memory = (memoryManager?.cells ?? []).flatMap(({ id, state }) =>
    Object.entries(state?.free ?? {}).map(([type, free]) => [type, `NUMA ${id}: ${bytesText(free)} free`]),
  );
  const texts = new Map<string, string>();
  for (const [resource = '', text = ''] of [...parts, ...memory]) {
    const before = texts.get(resource);
    texts.set(resource, cut(before === undefined ? text : `${before}, ${text}`, MAX_RESOURCE_CHARACTERS));
  }
  return [...texts];
}
