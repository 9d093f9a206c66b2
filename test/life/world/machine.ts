import { renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { CpuSet } from '../../../model/cpu-set.ts';
import { writeMachine } from '../../hardware/machine-fixture.ts';
import { createSysfsTree, type SysfsTree } from '../../hardware/sysfs-fixture.ts';
import { writeTree } from '../../support/files.ts';

/** Two NUMA nodes of four cores; the second thread of core n is CPU n + 8. */
const CORES = 8;
const ALL_CPUS = CpuSet.range(0, 2 * CORES - 1);
const CELLS = { 0: '0-3,8-11', 1: '4-7,12-15' } as const;
export const CELL_IDS = [0, 1] as const;
export const PAGE_BYTES = 2 * 1024 * 1024;

export const coreOf = (cpu: number): CpuSet => CpuSet.of([cpu % CORES, (cpu % CORES) + CORES]);

/** What the kernel of the emulated machine says now: a kubelet reads it when it starts. */
export interface MachineFacts {
  readonly online: CpuSet;
  readonly pages: readonly [number, number];
}

export function expectedHost({ online, pages }: MachineFacts) {
  const cores = Array.from({ length: CORES }, (_, core) => coreOf(core).intersect(online)).filter(
    (core) => !core.isEmpty,
  );
  return {
    cells: CELL_IDS.map((id) => ({ id, cpus: CpuSet.parse(CELLS[id]).intersect(online).toString() })),
    cores: cores.map(String).sort(),
    offline: ALL_CPUS.minus(online).toString(),
    pages: pages.map((count) => count * PAGE_BYTES),
  };
}

export class Machine {
  facts: MachineFacts = { online: ALL_CPUS, pages: [512, 512] };
  /** When its CPUs changed, in monotonic milliseconds. */
  changedAt = 0;
  readonly nics = new Map<string, number>();
  readonly #root: string;
  readonly #tree: SysfsTree;

  constructor(root: string) {
    this.#root = root;
    this.#tree = createSysfsTree(root);
    this.#write();
    this.addNic('ens1f0', 0);
  }

  #write(): void {
    const { online, pages } = this.facts;
    rmSync(join(this.#root, 'devices/system'), { recursive: true, force: true });
    const position = (cpu: number) => cpu % CORES;
    writeMachine(this.#root, {
      name: 'node',
      cpus: ALL_CPUS.toString(),
      offline: ALL_CPUS.minus(online).toString(),
      core: ALL_CPUS.toArray().map(position),
      package: ALL_CPUS.toArray().map((cpu) => (position(cpu) < CORES / 2 ? 0 : 1)),
      siblings: Array.from({ length: CORES }, (_, core) => coreOf(core).toString()),
      nodes: CELLS,
    });
    for (const id of CELL_IDS) this.#writePages(id, pages[id]);
  }

  #writePages(cell: number, count: number): void {
    const directory = `devices/system/node/node${cell}/hugepages/hugepages-2048kB`;
    for (const file of ['free_hugepages', 'nr_hugepages'])
      writeTree(this.#root, { [`${directory}/${file}`]: `${count}\n` });
  }

  /** The kernel's lists change one after another. */
  setOnline(online: CpuSet): void {
    this.facts = { ...this.facts, online };
    this.changedAt = performance.now();
    this.#write();
  }

  setPages(cell: (typeof CELL_IDS)[number], count: number): void {
    const pages: [number, number] = [...this.facts.pages];
    pages[cell] = count;
    this.facts = { ...this.facts, pages };
    this.#writePages(cell, count);
  }

  addNic(name: string, cell: number): void {
    const address = `0000:${(0x18 + this.nics.size).toString(16)}:00.${this.nics.size % 8}`;
    this.#tree.pci(address, cell);
    this.#tree.nic(name, address, { files: { carrier: '1\n' } });
    this.nics.set(name, cell);
  }

  renameNic(from: string, to: string): void {
    renameSync(join(this.#root, 'class/net', from), join(this.#root, 'class/net', to));
    this.nics.set(to, this.nics.get(from) ?? 0);
    this.nics.delete(from);
  }

  moveNic(name: string, cell: number): void {
    writeFileSync(join(this.#root, 'class/net', name, 'device/numa_node'), `${cell}\n`);
    this.nics.set(name, cell);
  }

  get nicCells(): CpuSet {
    return CpuSet.of(this.nics.values());
  }
}
