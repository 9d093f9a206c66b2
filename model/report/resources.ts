import { cut } from '../errors.ts';
import type { HostReport } from '../kubelet/report.ts';
import { bytesText } from '../quantity.ts';

const MAX_RESOURCE_CHARACTERS = 256;

/** Free devices and memory by resource in a report, as text for people: `NUMA 0: 3 of 4 free`. */
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
