import { join } from 'node:path';
import { CpuSet } from '../../../model/cpu-set.ts';
import { UNKNOWN_VIEW } from '../../../node-agent/assignments/view.ts';
import type { KernelIo } from '../../../node-agent/interrupts/knobs.ts';
import { InterruptMoves } from '../../../node-agent/interrupts/moves.ts';
import { Originals } from '../../../node-agent/interrupts/originals.ts';
import { FakeAffinity } from '../../native/affinity-stand-in.ts';
import { recordingLogger, set, settableView, tempDirectories, testMetrics, turns, twoCells } from '../support.ts';

/** Files of a kernel that refuses as it does: a missing file, a mask of its own, and any error that a test sets. */
export class FakeKernel implements KernelIo {
  readonly files = new Map<string, { text: string; instance: number }>();
  /** Errors of the next writes, by path. */
  readonly errors = new Map<string, string>();
  readonly readOnly = new Set<string>();
  readonly writes: string[] = [];
  #instances = 0;

  put(path: string, text: string | number): void {
    this.files.set(path, { text: `${text}\n`, instance: ++this.#instances });
  }

  /** Changes a file as another writer does. */
  change(path: string, text: string): void {
    const file = this.files.get(path);
    if (file !== undefined) file.text = `${text}\n`;
  }

  /** Renames a directory, as the kernel does with that of a network interface: its files stay the same. */
  rename(from: string, to: string): void {
    for (const [path, file] of [...this.files]) {
      if (!path.startsWith(`${from}/`)) continue;
      this.files.delete(path);
      this.files.set(to + path.slice(from.length), file);
    }
  }

  text(path: string): string | undefined {
    return this.files.get(path)?.text.trim();
  }

  read(path: string) {
    return this.files.get(path);
  }

  readOnce(path: string) {
    return this.text(path);
  }

  stat(path: string) {
    const instance = this.files.get(path)?.instance;
    return instance === undefined ? undefined : { ino: instance, mode: this.readOnly.has(path) ? 0o400 : 0o600 };
  }

  linkName(path: string): string | undefined {
    return this.text(path);
  }

  write(path: string, text: string, inode?: number): void {
    const isThere = this.files.has(path) && (inode === undefined || inode === this.stat(path)?.ino);
    const code = this.errors.get(path) ?? (isThere ? undefined : 'ENOENT');
    if (code !== undefined) throw Object.assign(new Error(code), { code });
    this.writes.push(`${path} ${text}`);
    this.change(path, text);
    const effective = path.replace('smp_affinity_list', 'effective_affinity_list');
    if (effective !== path) this.change(effective, String(set(text).first));
  }

  list(path: string): string[] {
    const inside = [...this.files.keys()].filter((name) => name.startsWith(`${path}/`));
    return [...new Set(inside.map((name) => name.slice(path.length + 1).split('/')[0] ?? ''))];
  }

  close(): void {}
  closeAll(): void {}

  /** An interrupt of a device's queue, with the handler's name. */
  irq(number: number, { cpus, action, hwirq = number, cell = -1, pci = '0000:c1:00.0' }: FakeIrq): void {
    this.put(`/proc/irq/${number}/smp_affinity_list`, cpus);
    this.put(`/proc/irq/${number}/effective_affinity_list`, String(set(cpus).first));
    this.put(`/proc/irq/${number}/node`, cell);
    this.put(`/sys/kernel/irq/${number}/actions`, action);
    this.put(`/sys/kernel/irq/${number}/chip_name`, `PCI-MSIX-${pci}`);
    this.put(`/sys/kernel/irq/${number}/hwirq`, hwirq);
  }

  mask(number: number): string | undefined {
    return this.text(`/proc/irq/${number}/smp_affinity_list`);
  }
}

export interface FakeIrq {
  readonly cpus: string;
  readonly action: string;
  readonly hwirq?: number;
  readonly cell?: number;
  readonly pci?: string;
}

/** A machine with two NUMA nodes of four CPUs, and an agent that moves, or does not. */
export function createStage(stateFile: string) {
  const kernel = new FakeKernel();
  const kthreads = new FakeAffinity();
  const metrics = testMetrics();
  const logged = recordingLogger();
  const events: string[] = [];
  let at = 1000;
  let online = set('0-7');
  const assignments = settableView({ free: CpuSet.EMPTY });
  let stop = new AbortController();
  let running: Promise<void> = Promise.resolve();
  let moves: InterruptMoves | undefined;

  const start = async (
    changes: Partial<ConstructorParameters<typeof InterruptMoves>[0]> & { bootId?: string } = {},
  ) => {
    stop = new AbortController();
    const { bootId = 'boot-1', ...deps } = changes;
    const originals = new Originals({ path: stateFile, bootId, log: logged.log });
    moves = new InterruptMoves({
      files: kernel,
      procRoot: '/proc',
      sysfsRoot: '/sys',
      etcRoot: '/etc',
      affinity: kthreads,
      originals,
      isMoving: true,
      assignments,
      irqbalanceRundir: '/run/irqbalance',
      cpus: () => ({ online, quiet: CpuSet.EMPTY, cells: twoCells.cells }),
      nowSeconds: () => at,
      nodeName: 'worker-1',
      log: logged.log,
      metrics,
      events: { record: (_, { reason, message }) => void events.push(`${reason}: ${message}`), flush: async () => {} },
      ...deps,
    });
    running = moves.run(stop.signal);
    // `end` throws what it fails with.
    running.catch(() => undefined);
    await turns();
  };

  /** Lets time pass, and the next pass run. */
  const later = async (seconds: number) => {
    at += seconds;
    assignments.set({});
    await turns();
  };
  /** Changes the owned CPUs, and waits until the agent has followed. */
  const own = async (cpus: string) => {
    assignments.free('', cpus);
    await turns();
  };

  return {
    kernel,
    kthreads,
    events,
    logged,
    metrics,
    start,
    get moves() {
      return moves!;
    },
    /** The agent ends; everything stays as it is. @throws what its duty failed with */
    async end() {
      stop.abort();
      const ended = running;
      running = Promise.resolve();
      await ended;
    },
    set online(cpus: string) {
      online = set(cpus);
    },
    /** Forgets the owners, as an agent that starts. */
    unknown() {
      assignments.set(UNKNOWN_VIEW);
    },
    own,
    /** Ends all owners, and the time in which CPUs stay clear after a release. */
    async release() {
      await own('');
      await later(6);
    },
    later,
    states: () => moves!.status().items.map(({ name, state, error }) => `${name}: ${state}${error ? ` ${error}` : ''}`),
  };
}

/** The stages of a suite, each with a state file of its own; they end with each test. */
export function useStages() {
  const temp = tempDirectories();
  const stages: ReturnType<typeof createStage>[] = [];
  afterEach(async () => {
    for (const stage of stages.splice(0)) await stage.end();
  });
  const stageAt = (path = join(temp(), 'interrupts.json')) => {
    const stage = createStage(path);
    stages.push(stage);
    return { ...stage, stage, path };
  };
  /** A stage with one interrupt, 40 a, and an agent that has moved it off the owned CPUs. */
  const movedAt = async ({ cpus, owned }: { cpus: string; owned: string }) => {
    const stage = stageAt();
    stage.kernel.irq(40, { cpus, action: 'a' });
    await stage.start();
    await stage.own(owned);
    return stage;
  };
  return { stageAt, movedAt };
}
