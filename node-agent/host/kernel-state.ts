import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { CpuSet } from '../../model/cpu-set.ts';
import { resultOrNone } from '../../model/json.ts';
import { readHead } from '../files/bounded-file.ts';

/** What the kernel can change while a kubelet runs, and that kubelet reads only when it starts. */
export interface KernelState {
  readonly online: CpuSet;
  /** Number of huge pages by NUMA node and page size: `node0/hugepages/hugepages-2048kB`. */
  readonly pages: ReadonlyMap<string, number>;
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

  /** Undefined while a file cannot be read or is torn. */
  read(): KernelState | undefined {
    return resultOrNone(() => {
      const pages = this.#pageFiles.map((name) => {
        const count = readHead(join(this.#nodes, name, 'nr_hugepages'), MAX_BYTES).trim();
        if (!/^\d+$/.test(count)) throw new Error(`${name}: not a number`);
        return [name, Number(count)] as const;
      });
      return { online: CpuSet.parse(readHead(this.#online, MAX_BYTES)), pages: new Map(pages) };
    });
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
