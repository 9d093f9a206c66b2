import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { hugePagesName } from '../../hardware/memory.ts';
import { CpuSet } from '../../model/cpu-set.ts';
import { PlumblineError } from '../../model/errors.ts';
import { resultOrNone } from '../../model/json.ts';
import { readHead } from '../files/bounded-file.ts';

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

  /** @throws KernelStateError naming the first file that cannot be read or is torn */
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

class KernelStateError extends PlumblineError {
  constructor(path: string, cause: unknown) {
    super('kernel-state', `${path}: ${(cause as Error).message}`, { cause });
  }
}

function contentOf<T>(path: string, parse: (text: string) => T): T {
  try {
    return parse(readHead(path, MAX_BYTES).trim());
  } catch (error) {
    throw new KernelStateError(path, error);
  }
}

function list(directory: string, pattern: RegExp): string[] {
  return (resultOrNone(() => readdirSync(directory)) ?? []).filter((name) => pattern.test(name)).sort();
}

const PAGE_FILE = /^node(\d+)\/hugepages\/hugepages-(\d+)kB$/;

/** What changed, for people; CPUs are compared by `unseenCpus`. */
export function changedPages(before: KernelState, now: KernelState): string[] {
  const texts: string[] = [];
  for (const [name, count] of now.pages) {
    const was = before.pages.get(name) ?? 0;
    if (was === count) continue;
    const [, node, kibibytes] = PAGE_FILE.exec(name) ?? [];
    texts.push(
      `NUMA node ${node} has ${count} huge pages of ${kibibytes} KiB, and had ${was} when the kubelet started`,
    );
  }
  return texts;
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
