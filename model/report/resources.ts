import { cut } from '../brief.ts';
import type { HostReport } from '../kubelet/report.ts';
import { bytesText } from '../quantity.ts';

/** Free devices or free memory of one resource on some NUMA nodes. */
export interface ResourceOnCells {
  readonly resource: string;
  /** A list such as `0-1`; '' if the devices have no NUMA node. */
  readonly cells: string;
  /** Number of devices; undefined for memory. */
  readonly total: number | undefined;
  /** Number of devices, or bytes. */
  readonly free: number;
}

/** Characters of one resource's line. */
const MAX_LINE_CHARACTERS = 256;

/** What a report has free besides CPUs: devices, then the memory of a static memory manager. */
export function resourcesOf({
  devices = [],
  memoryManager,
}: Pick<HostReport, 'devices' | 'memoryManager'>): ResourceOnCells[] {
  const memory = (memoryManager?.cells ?? []).flatMap(({ id, state }) =>
    Object.entries(state?.free ?? {}).map(([resource, free]) => ({ resource, cells: `${id}`, total: undefined, free })),
  );
  return [
    ...devices.flatMap(({ resource, groups }) =>
      groups.map(({ cells = '', ...counts }) => ({ resource, cells, ...counts })),
    ),
    ...memory,
  ];
}

/** One line for each resource, for people. */
export function resourceLines(resources: readonly ResourceOnCells[]): (readonly [resource: string, text: string])[] {
  const lines = new Map<string, string>();
  for (const { resource, cells, total, free } of resources) {
    const amount = total === undefined ? `${bytesText(free)} free` : `${free} of ${total} free`;
    const before = lines.has(resource) ? `${lines.get(resource)}, ` : '';
    lines.set(resource, `${before}${cells === '' ? '' : `NUMA ${cells}: `}${amount}`);
  }
  return [...lines].map(([resource, text]) => [resource, cut(text, MAX_LINE_CHARACTERS)]);
}
