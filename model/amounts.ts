import type { CpuSet } from './cpu-set.ts';
import { bytesText } from './quantity.ts';

/** `1 node`, `3 nodes`. */
export function countText(number: number, noun: string, plural = `${noun}s`): string {
  return `${number} ${number === 1 ? noun : plural}`;
}

/** `1 CPU`, `3 CPUs`. */
export const cpusText = (number: number): string => countText(number, 'CPU');

const numberedText = (noun: string, list: string) => `${noun}${/^\d+$/.test(list) ? '' : 's'} ${list}`;

/** CPUs by number: `CPU 3`, `CPUs 3-5`. @param list in the form of /sys */
export const cpuListText = (list: CpuSet | string): string => numberedText('CPU', `${list}`);

/** NUMA nodes by number: `NUMA node 1`, `NUMA nodes 0-1`. @param list in the form of /sys */
export const numaNodesText = (list: CpuSet | string): string => numberedText('NUMA node', `${list}`);

/** `CPU 3 is`, `CPUs 3-5 are`. */
export const cpusAre = (cpus: CpuSet): string => `${cpuListText(cpus.brief)} ${cpus.size === 1 ? 'is' : 'are'}`;

/** An amount of a Kubernetes resource: `1.5 CPUs`, `4 GiB`, `2 devices`. @param amount CPUs, bytes or devices */
export function amountText(resource: string, amount: number): string {
  if (resource === 'cpu') return cpusText(Number(amount.toFixed(3)));
  const isBytes = resource === 'memory' || resource === 'ephemeral-storage' || resource.startsWith('hugepages-');
  return isBytes ? bytesText(amount) : countText(amount, 'device');
}
