import type { DisturbedPod } from '../../kube/node-topology.ts';
import type { DisturbedVm } from '../../model/agent-status.ts';
import { COMPUTE } from '../../model/shapes.ts';
import { everyTick } from '../../runtime/time.ts';
import type { Assignments } from '../assignments/assignments.ts';
import type { CpuOwner } from '../assignments/view.ts';
import { Guard, Listeners, type Services } from '../lifecycle/duty.ts';
import { InterruptMeter, type MeterDeps } from './meter.ts';

/** Seconds between readings: one costs about 25 ms of a CPU on a machine with 256 CPUs. */
const READ_SECONDS = 30;
const PERCENT_STEPS = [50, 20, 10, 5, 2, 1];

export interface InterferenceDeps extends MeterDeps, Pick<Services, 'metrics'> {
  readonly assignments: Pick<Assignments, 'view' | 'subscribe'>;
}

/**
 * Measures what ran on the CPUs of the VMs besides them, while there are VMs with CPUs of their own.
 *
 * Owner: this duty. Age: 30 s. End: the run's signal.
 */
export class Interference {
  readonly #deps: InterferenceDeps;
  readonly #meter: InterruptMeter;
  readonly #listeners = new Listeners();
  #disturbed: readonly DisturbedPod[] = [];
  #endReadings: (() => void) | undefined;

  constructor(deps: InterferenceDeps) {
    this.#deps = deps;
    this.#meter = new InterruptMeter(deps);
  }

  async run(signal: AbortSignal): Promise<void> {
    const { assignments } = this.#deps;
    const guard = new Guard();
    const read = guard.wrap(() => this.read());
    const follow = guard.wrap(() => {
      const hasVms = this.#owners().length > 0;
      if (hasVms === (this.#endReadings !== undefined)) return;
      this.#endReadings?.();
      this.#endReadings = hasVms ? everyTick(READ_SECONDS, read) : undefined;
      this.read();
    });
    const end = assignments.subscribe(follow);
    follow();
    try {
      await guard.until(signal);
    } finally {
      end();
      this.#endReadings?.();
      this.#endReadings = undefined;
    }
  }

  /** For the report, which changes seldom: percents have steps. */
  disturbed(): readonly DisturbedPod[] {
    return this.#disturbed;
  }

  readonly subscribe = this.#listeners.subscribe;

  /** Reads once. */
  read(): void {
    this.#meter.read(this.#owners());
    this.#publish();
    const disturbed = this.#meter.vms.flatMap(({ owner: { podUID, name }, account: { disturbance } }) => {
      const percent = PERCENT_STEPS.find((step) => step <= (disturbance ?? 0) * 100);
      return name === undefined || percent === undefined ? [] : [{ podUID, ...name, percent }];
    });
    const isChanged = JSON.stringify(disturbed) !== JSON.stringify(this.#disturbed);
    this.#disturbed = disturbed;
    if (isChanged) this.#listeners.notify();
  }

  /** For display. */
  vms(): DisturbedVm[] {
    return this.#meter.status();
  }

  get problems(): readonly string[] {
    return this.#meter.problems;
  }

  #owners(): readonly CpuOwner[] {
    return this.#deps.assignments.view().assignments.filter(({ container }) => container === COMPUTE);
  }

  /** Replaces all values: those of VMs that have ended go with them. */
  #publish(): void {
    const { vmInterrupts, vmRunDelay, vmOwnThreads, vmStolenShare } = this.#deps.metrics;
    for (const metric of [vmInterrupts, vmRunDelay, vmOwnThreads, vmStolenShare]) metric.reset();
    for (const { owner, guest, account } of this.#meter.vms) {
      const namespace = guest?.launcher.namespace ?? owner.name?.namespace;
      const name = guest?.launcher.vmi.name ?? owner.name?.podName;
      if (namespace === undefined || name === undefined) continue;
      const labels = { namespace, name };
      const { interrupts, runDelay, nonVcpuTime } = account.totals;
      if (interrupts !== undefined) vmInterrupts.inc(labels, interrupts);
      if (runDelay !== undefined) vmRunDelay.inc(labels, runDelay);
      if (nonVcpuTime !== undefined) vmOwnThreads.inc(labels, nonVcpuTime);
      if (account.share !== undefined) vmStolenShare.set(labels, account.share);
    }
  }
}
