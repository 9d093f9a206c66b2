import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { type HostMemory, hugePagesName, readMemory } from '../../hardware/memory.ts';
import { readIsolated, readOffline, readSysfs } from '../../hardware/sysfs.ts';
import { CpuSet } from '../../model/cpu-set.ts';
import { PlumblineError } from '../../model/errors.ts';
import { createHost, type Host, type HostDescription } from '../../model/host.ts';
import { describeForKubelet, kubeletContradictions, type SysfsHost } from '../../model/host-sysfs.ts';
import { resultOrNone } from '../../model/json.ts';
import { readHead } from '../files/bounded-file.ts';

/** A host as a kubelet sees it. */
export interface KubeletHost {
  readonly description: HostDescription;
  readonly host: Host;
  /** Where the kubelet's cores are not the kernel's. */
  readonly contradictions: readonly string[];
}

/** What a kubelet reads of the kernel when it starts. */
export interface HostFacts extends KubeletHost {
  readonly sysfs: SysfsHost;
  readonly memory: HostMemory;
  /** CPUs that the kernel's scheduler uses only for threads pinned to them (isolcpus). */
  readonly isolated: CpuSet;
  readonly offline: CpuSet;
}

/** @throws SysfsError, HostError or ParseError if the host cannot be described, for example while a CPU goes offline */
export async function readHostFacts(sysfsRoot: string): Promise<HostFacts> {
  const sysfs = await readSysfs(sysfsRoot);
  const description = describe(sysfs);
  const cells = description.host.cells.map(({ id }) => id);
  return {
    ...description,
    sysfs,
    memory: await readMemory(sysfsRoot, cells),
    isolated: await readIsolated(sysfsRoot),
    offline: await readOffline(sysfsRoot),
  };
}

/**
 * The host as a kubelet sees it that started when only these CPUs were online; CPUs that sysfs does not describe are
 * left out. @throws HostError if none is left
 */
export function hostWithCpus(facts: HostFacts, cpus: CpuSet): KubeletHost {
  if (facts.host.online.isSubsetOf(cpus)) return facts;
  return describe({ ...facts.sysfs, online: facts.host.online.intersect(cpus).toString() });
}

function describe(sysfs: SysfsHost): KubeletHost {
  const description = describeForKubelet(sysfs);
  const host = createHost(description);
  return { description, host, contradictions: kubeletContradictions(sysfs, host) };
}

/** What the kernel can change while a kubelet runs, and that kubelet reads only when it starts. */
export interface KernelState {
  readonly online: CpuSet;
  /** Number of huge pages by NUMA node and page size: `node0/hugepages/hugepages-2048kB`. */
  readonly pages: ReadonlyMap<string, number>;
  /** Those that are free now, of each entry that has pages. */
  readonly freePages: ReadonlyMap<string, number>;
}

/** A file of sysfs has at most a page. */
const MAX_BYTES = 4096;

/** Reads the state again and again with few system calls. It lists the files once, since every check costs one read each. */
export class KernelStateReader {
  readonly #online: string;
  readonly #nodes: string;
  readonly #pageFiles: readonly string[];

  constructor(sysfsRoot: string) {
    this.#online = join(sysfsRoot, 'devices/system/cpu/online');
    this.#nodes = join(sysfsRoot, 'devices/system/node');
    this.#pageFiles = list(this.#nodes, /^node\d+$/).flatMap((node) =>
      list(join(this.#nodes, node, 'hugepages'), /^hugepages-\d+kB$/).map((size) => `${node}/hugepages/${size}`),
    );
  }

  /** @throws PlumblineError naming the first file that cannot be read or is torn */
  read(): KernelState {
    const counts = (names: readonly string[], file: string) =>
      new Map(names.map((name) => [name, contentOf(join(this.#nodes, name, file), wholeNumber)]));
    const pages = counts(this.#pageFiles, 'nr_hugepages');
    const freePages = counts(
      this.#pageFiles.filter((name) => (pages.get(name) ?? 0) > 0),
      'free_hugepages',
    );
    return { online: contentOf(this.#online, (text) => CpuSet.parse(text)), pages, freePages };
  }
}

function wholeNumber(text: string): number {
  if (!/^\d+$/.test(text)) throw new Error('not a number');
  return Number(text);
}

function contentOf<T>(path: string, parse: (text: string) => T): T {
  try {
    return parse(readHead(path, MAX_BYTES).trim());
  } catch (cause) {
    throw new PlumblineError('kernel-state', `${path}: ${(cause as Error).message}`, { cause });
  }
}

function list(directory: string, pattern: RegExp): string[] {
  return (resultOrNone(() => readdirSync(directory)) ?? []).filter((name) => pattern.test(name)).sort();
}

const PAGE_FILE = /^node(\d+)\/hugepages\/hugepages-(\d+)kB$/;

/** What changed, for people; CPUs are compared by `unseenCpus`. */
export function changedPages(before: KernelState, now: KernelState): string[] {
  return [...now.pages].flatMap(([name, count]) => {
    const was = before.pages.get(name) ?? 0;
    if (was === count) return [];
    const [, node, kibibytes] = PAGE_FILE.exec(name) ?? [];
    return `NUMA node ${node} has ${count} huge pages of ${kibibytes} KiB, and had ${was} when the kubelet started`;
  });
}

/** Bytes in huge pages that are free, by NUMA node and resource name. */
export function freePageBytes({ freePages }: KernelState): Map<number, Record<string, number>> {
  const cells = new Map<number, Record<string, number>>();
  for (const [name, count] of freePages) {
    const [, node, kibibytes] = (PAGE_FILE.exec(name) ?? []).map(Number);
    if (node === undefined || kibibytes === undefined) continue;
    cells.set(node, { ...cells.get(node), [hugePagesName(kibibytes)]: count * kibibytes * 1024 });
  }
  return cells;
}
