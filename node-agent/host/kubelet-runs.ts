import { statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { POD_RESOURCES_SOCKET } from '../../kube/kubelet-api/pod-resources-client.ts';
import { CpuSet } from '../../model/cpu-set.ts';
import { ProblemLog } from '../../runtime/problem-log.ts';
import { Backoff, everyTick } from '../../runtime/time.ts';
import { watchDirectory } from '../files/watch-directory.ts';
import { ChangeSignal, Guard, Listeners, repeat } from '../lifecycle/duty.ts';
import type { AgentLogger, AgentMessages } from '../telemetry/log-messages.ts';
import { type HostFacts, type KernelState, KernelStateReader, readHostFacts } from './host-facts.ts';
import { kubeletStartedAt } from './kubelet-process.ts';

/** One run of the kubelet: from the creation of its PodResources socket to that of the next one. */
export interface KubeletRun {
  /** The socket's inode and time of change; '' before the first kubelet. */
  readonly id: string;
  /** When its process started, in milliseconds since 1970; undefined without a kubelet. */
  readonly startedAt: number | undefined;
  readonly facts: HostFacts;
  /** The CPUs that were online when the run was first read. The kubelet itself knows better: see its checkpoint. */
  readonly cpus: CpuSet;
  /** The kernel's state at that time; undefined if it could not be read. */
  readonly kernel: KernelState | undefined;
}

/** `unread`: nothing is known; `reading`: a run has begun, and the facts are of the run before it. */
export type RunMode = 'unread' | 'reading' | 'current';

/** Seconds between checks for changes of the kernel, and for a socket whose event was lost. */
const CHECK_SECONDS = 15;
const RETRY = { first: 0.2, most: 5 };

export interface KubeletRunsDeps {
  readonly sysfsRoot: string;
  readonly kubeletDir: string;
  readonly log: AgentLogger;
  /** Where the kubelet's process is looked up: / unless a test has another root. */
  readonly root?: string;
}

/**
 * Follows the kubelet from run to run. A kubelet reads the host once, when it starts, so what belongs to one run is
 * read again for the next one. Owner: the kubelet whose socket it is. Age: facts are read as soon as the socket
 * appears; `kernel` is at most 15 s old. End: the next socket; without one, the last run stays, since containers keep
 * running.
 */
export class KubeletRuns {
  readonly #deps: KubeletRunsDeps;
  readonly #socket: string;
  readonly #listeners = new Listeners();
  readonly #due = new ChangeSignal();
  readonly #kernelProblems: ProblemLog<AgentMessages>;
  #mode: RunMode = 'unread';
  #run: KubeletRun | undefined;
  #reader: KernelStateReader | undefined;
  #kernel: KernelState | undefined;
  #reading: Promise<HostFacts> | undefined;

  constructor(deps: KubeletRunsDeps) {
    this.#deps = deps;
    this.#socket = join(deps.root ?? '/', deps.kubeletDir, POD_RESOURCES_SOCKET);
    this.#kernelProblems = new ProblemLog(deps.log);
  }

  get mode(): RunMode {
    return this.#mode;
  }

  /** The last run that was read. */
  get run(): KubeletRun | undefined {
    return this.#run;
  }

  /** The kernel's state at the last check; undefined if it cannot be read. */
  get kernel(): KernelState | undefined {
    return this.#kernel;
  }

  /** Calls the listener when a run begins, when its facts have been read, and when the kernel has changed. */
  readonly subscribe = this.#listeners.subscribe;

  /** Identifies the run of this moment; '' without a socket. An unreadable socket counts as the last one. */
  readonly generation = (): string => {
    try {
      const { ino, ctimeMs } = statSync(this.#socket);
      return `${ino}:${ctimeMs}`;
    } catch (error) {
      return (error as NodeJS.ErrnoException).code === 'ENOENT' ? '' : (this.#run?.id ?? '');
    }
  };

  /** The facts of the current run. @throws SysfsError, HostError or ParseError if the host cannot be described */
  async read(): Promise<HostFacts> {
    if (this.#mode === 'current' && this.#run !== undefined) return this.#run.facts;
    this.#reading ??= this.#readRun().finally(() => {
      this.#reading = undefined;
    });
    return this.#reading;
  }

  /** The duty. */
  async follow(signal: AbortSignal): Promise<void> {
    const guard = new Guard();
    const onChange = guard.wrap(() => this.#findRun());
    watchDirectory({ path: dirname(this.#socket), signal, onChange, log: this.#deps.log });
    const check = guard.wrap(() => this.check());
    const endChecks = everyTick(CHECK_SECONDS, check);
    const readWhenDue = async () => void (await this.read());
    const reading = repeat(signal, readWhenDue, {
      problems: new ProblemLog(this.#deps.log),
      warning: 'reading the host failed; retrying',
      pauses: new Backoff(RETRY),
      changes: this.#due,
    });
    try {
      await Promise.race([reading, guard.until(signal)]);
    } finally {
      endChecks();
    }
  }

  /** Notices a run that has begun. */
  #findRun(): void {
    const id = this.generation();
    if (this.#mode !== 'current' || id === '' || id === this.#run?.id) return;
    this.#mode = 'reading';
    this.#due.set();
    this.#listeners.notify();
  }

  /** Looks for a new run and for changes of the kernel. */
  check(): void {
    this.#findRun();
    const before = this.#kernel;
    const now = this.#readKernel(this.#reader);
    if (now === undefined || isSame(before, now)) return;
    this.#kernel = now;
    // CPUs that came online are described only now. Whether the kubelet knows them is in its checkpoint.
    if (this.#run !== undefined && !now.online.isSubsetOf(CpuSet.parse(this.#run.facts.sysfs.online)))
      this.#rereadCpus();
    this.#listeners.notify();
  }

  /** Undefined while it cannot be read: what was read last stays. */
  #readKernel(reader: KernelStateReader | undefined): KernelState | undefined {
    if (reader === undefined) return undefined;
    try {
      const now = reader.read();
      this.#kernelProblems.recovered();
      return now;
    } catch (error) {
      this.#kernelProblems.failed(error, 'reading the kernel’s CPUs and huge pages failed; keeping the last ones');
      return undefined;
    }
  }

  #rereadCpus(): void {
    const run = this.#run;
    readHostFacts(this.#deps.sysfsRoot).then(
      (facts) => {
        if (this.#run !== run || run === undefined) return;
        this.#run = { ...run, facts: { ...facts, memory: run.facts.memory } };
        this.#listeners.notify();
      },
      // The next check finds the same difference.
      () => {
        this.#kernel = undefined;
      },
    );
  }

  async #readRun(): Promise<HostFacts> {
    const { sysfsRoot, root = '/', log } = this.#deps;
    for (;;) {
      const id = this.generation();
      const startedAt = id === '' ? undefined : await kubeletStartedAt(this.#socket, root);
      const facts = await readHostFacts(sysfsRoot);
      const reader = new KernelStateReader(sysfsRoot);
      const kernel = this.#readKernel(reader);
      const isTorn = kernel !== undefined && !kernel.online.equals(CpuSet.parse(facts.sysfs.online));
      if (isTorn || this.generation() !== id) continue;
      this.#reader = reader;
      this.#kernel = kernel;
      this.#run = { id, startedAt, facts, cpus: facts.host.online, kernel };
      this.#mode = 'current';
      const { cells, online, threadsPerCore } = facts.host;
      const { isolated, offline, contradictions } = facts;
      const fields = { cpus: online, isolated, offline, numaNodes: cells.map((cell) => cell.id), threadsPerCore };
      log.info({ ...fields, kubeletDiffers: contradictions }, 'host topology read');
      this.#listeners.notify();
      return facts;
    }
  }
}

function isSame(before: KernelState | undefined, now: KernelState): boolean {
  if (before === undefined || !before.online.equals(now.online)) return false;
  const differs = (old: KernelState['pages'], counts: KernelState['pages']) =>
    [...counts].some(([name, count]) => old.get(name) !== count);
  return !differs(before.pages, now.pages) && !differs(before.freePages, now.freePages);
}
