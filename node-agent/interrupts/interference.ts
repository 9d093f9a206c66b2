import { join } from 'node:path';
import { interruptSeconds, sourceCounts } from '../../hardware/interrupt-counts.ts';
import type { DisturbedPod } from '../../kube/node-topology.ts';
import type { DisturbedVm } from '../../model/agent-status.ts';
import { errorText } from '../../model/errors.ts';
import { byText } from '../../model/lists.ts';
import { COMPUTE } from '../../model/shapes.ts';
import { everyTick } from '../../runtime/time.ts';
import type { Assignments } from '../assignments/assignments.ts';
import type { CpuOwner } from '../assignments/view.ts';
import { readBounded } from '../files/bounded-file.ts';
import { Guard, Listeners, type Services } from '../lifecycle/duty.ts';
import { VmAccount } from './vm-account.ts';
import { devicesOf, type Guest, handlerOf, type ReadingDeps, readVm } from './vm-reading.ts';

/** Seconds between readings: one costs about 25 ms of a CPU on a machine with 256 CPUs. */
const READ_SECONDS = 30;
const PERCENT_STEPS = [50, 20, 10, 5, 2, 1];
/** Maximum bytes: 4 MB with 256 CPUs and 1,500 interrupts. */
const MAX_INTERRUPTS_BYTES = 32 * 1024 * 1024;
const TOP_SOURCES = 5;

interface InterferenceDeps extends ReadingDeps, Pick<Services, 'metrics'> {
  readonly sysfsRoot: string;
  readonly assignments: Pick<Assignments, 'view' | 'subscribe'>;
  readonly guests: () => readonly Guest[];
  /** Monotonic seconds. */
  readonly nowSeconds: () => number;
}

/**
 * Measures what ran on the CPUs of the VMs besides them, while there are VMs with CPUs of their own.
 *
 * Owner: this duty. Age: 30 s. End: the run's signal; an account's with the owner of the CPUs.
 */
export class Interference {
  readonly #deps: InterferenceDeps;
  readonly #listeners = new Listeners();
  /** By what begins a new account when it changes: the pod, its CPUs, and how the kernel counts. */
  #accounts: ReadonlyMap<string, VmAccount> = new Map();
  /** What the kernel prints about a source, by its id. */
  #sources: ReadonlyMap<string, string> = new Map();
  #problems: string[] = [];
  #disturbed: readonly DisturbedPod[] = [];

  constructor(deps: InterferenceDeps) {
    this.#deps = deps;
  }

  async run(signal: AbortSignal): Promise<void> {
    const guard = new Guard();
    const read = guard.wrap(() => this.read());
    const follow = guard.wrap(() => {
      if (this.#owners().length > 0 !== this.#accounts.size > 0) this.read();
    });
    const ends = [this.#deps.assignments.subscribe(follow), everyTick(READ_SECONDS, read)];
    follow();
    try {
      await guard.until(signal);
    } finally {
      for (const end of ends) end();
    }
  }

  /** For the report, which changes seldom: percents have steps. */
  disturbed(): readonly DisturbedPod[] {
    return this.#disturbed;
  }

  readonly subscribe = this.#listeners.subscribe;

  get problems(): readonly string[] {
    return this.#problems;
  }

  /** For display. It reads the devices of the most frequent interrupts from sysfs. */
  vms(): DisturbedVm[] {
    const vms = [...this.#accounts.values()].map((account) => ({
      ...account.status(),
      sources: account.topSources(TOP_SOURCES).map(({ id, count }) => {
        const text = this.#sources.get(id) ?? '';
        return { id, name: handlerOf(text), devices: devicesOf(this.#deps.sysfsRoot, text), count };
      }),
    }));
    return vms.sort(byText(({ namespace, vmi, podName }) => `${namespace} ${vmi} ${podName}`));
  }

  /** Reads once; nothing without VMs. */
  read(): void {
    this.#problems = [];
    const owners = this.#owners();
    this.#accounts = owners.length === 0 ? new Map() : this.#measure(owners);
    this.#publish();
    const disturbed = [...this.#accounts.values()].flatMap(({ vm: { podUID, namespace, podName }, disturbance }) => {
      const percent = PERCENT_STEPS.find((step) => step <= disturbance * 100);
      return namespace === '' || percent === undefined ? [] : [{ podUID, namespace, podName, percent }];
    });
    const isChanged = JSON.stringify(disturbed) !== JSON.stringify(this.#disturbed);
    this.#disturbed = disturbed;
    if (isChanged) this.#listeners.notify();
  }

  #owners(): readonly CpuOwner[] {
    return this.#deps.assignments.view().assignments.filter(({ container }) => container === COMPUTE);
  }

  #measure(owners: readonly CpuOwner[]): ReadonlyMap<string, VmAccount> {
    const at = this.#deps.nowSeconds();
    const groups = owners.map(({ cpus }) => cpus);
    const sources = ['interrupts', 'softirqs'].flatMap((file) => sourceCounts(this.#textOf(file), groups));
    const seconds = interruptSeconds(this.#textOf('stat'), groups);
    this.#sources = new Map(sources.map(({ id, text }) => [id, text]));
    const guestOf = new Map(this.#deps.guests().map((guest) => [guest.launcher.uid, guest]));
    const accounts = owners.map(({ podUID, cpus, name }, i): [string, VmAccount] => {
      const guest = guestOf.get(podUID);
      const counts = sources.map(({ id, counts }) => [id, counts[i] ?? 0] as const).filter(([, count]) => count > 0);
      const { namespace, podName } = guest?.launcher ?? name ?? { namespace: '', podName: '' };
      const vm = { namespace, vmi: guest?.launcher.vmi.name ?? '', podName, podUID };
      const reading = { at, vm, ...readVm(this.#deps, guest, seconds[i]), counts: new Map(counts) };
      const key = [podUID, cpus, reading.quality].join(' ');
      const account = this.#accounts.get(key) ?? new VmAccount(cpus, reading);
      account.add(reading);
      return [key, account];
    });
    return new Map(accounts);
  }

  /** A file of procfs; '' if it cannot be read. */
  #textOf(name: string): string {
    const path = join(this.#deps.procRoot, name);
    try {
      const text = readBounded(path, MAX_INTERRUPTS_BYTES);
      if (text === '') this.#problems.push(`${path} is empty: the container runtime masks it`);
      return text;
    } catch (error) {
      this.#problems.push(errorText(error));
      return '';
    }
  }

  /** Replaces all values: those of VMs that have ended go with them. */
  #publish(): void {
    const { vmInterrupts, vmRunDelay, vmOwnThreads, vmStolenShare } = this.#deps.metrics;
    for (const metric of [vmInterrupts, vmRunDelay, vmOwnThreads, vmStolenShare]) metric.reset();
    for (const account of this.#accounts.values()) {
      const { namespace, vmi, podName, sinceStart, share } = account.status();
      if (namespace === '') continue;
      const labels = { namespace, name: vmi || podName };
      const values = [
        [vmInterrupts, sinceStart.interrupts],
        [vmRunDelay, sinceStart.runDelay],
        [vmOwnThreads, sinceStart.own],
        [vmStolenShare, share],
      ] as const;
      for (const [metric, value] of values) if (value !== null) metric.inc(labels, value);
    }
  }
}
