import type { PinningState } from '../../kube/node-topology.ts';
import type { Reflector } from '../../kube/reflector.ts';
import type { VmStatus } from '../../model/agent-status.ts';
import type { Host } from '../../model/host.ts';
import { COMPUTE } from '../../model/shapes.ts';
import type { Assignments } from '../assignments/assignments.ts';
import { Guard, Listeners, type Services, Throttle } from '../lifecycle/duty.ts';
import { allowedOf } from '../processes/proc.ts';
import { LauncherChecks, type LauncherPinningParts, type LauncherView } from './launcher-pinning.ts';
import type { Launcher } from './launchers.ts';
import type { PinRecord } from './pins-file.ts';
import { maskOverlaps, PinningReporting, pinningStates, statusOf } from './reporting.ts';

/** The pause after a pass, as a multiple of its duration. */
const PASS_REST_FACTOR = 3;
/** Milliseconds between passes while a VM with a mask is starting: without a paused start the guest runs at once. */
const STARTING_POLL_MILLISECONDS = 100;

interface VmPinningDeps extends LauncherPinningParts, Omit<Services, 'client'> {
  readonly launchers: Pick<Reflector<Launcher | undefined>, 'items' | 'run'>;
  readonly record: Pick<PinRecord, keyof PinRecord>;
  /** Calls the listener when a launcher has changed. @returns a function that ends the subscription */
  readonly onLaunchers: (listener: () => void) => () => void;
  readonly assignments: Pick<Assignments, 'view' | 'subscribe'>;
  readonly host: () => Host | undefined;
  readonly checkInterval: number;
}

/**
 * A launcher's cgroup lists its processes and CPUs; the names of QEMU's threads show their roles. Besides changes, a
 * timer causes passes, since no event reports that virt-handler or libvirt moved a thread, or that QEMU started.
 * Invariant: no thread gets a CPU outside its container's cpuset.
 *
 * Owner: this duty. Age: views are those of the last pass; every `checkInterval`, a pass checks all. End: the run's
 * signal.
 */
export class VmPinning {
  readonly #deps: VmPinningDeps;
  readonly #listeners = new Listeners();
  readonly #reporting: PinningReporting;
  readonly #launcherChecks: LauncherChecks;
  #views: readonly LauncherView[] = [];
  #states: readonly PinningState[] = [];
  #pinsText = '';
  /** Whether the next pass checks all launchers, not only those that start. */
  #isFull = true;
  /** When the next full pass is due, in monotonic milliseconds. */
  #nextFull = 0;
  #timer: NodeJS.Timeout | undefined;

  constructor(deps: VmPinningDeps) {
    this.#deps = deps;
    this.#reporting = new PinningReporting(deps);
    this.#launcherChecks = new LauncherChecks(deps, (uid) => this.#reporting.forget(uid));
  }

  readonly subscribe = this.#listeners.subscribe;

  pinning(): readonly PinningState[] {
    return this.#states;
  }

  /** The managed VMs, as of the last pass. */
  guests(): readonly LauncherView[] {
    return this.#views;
  }

  readonly status = (): VmStatus => statusOf(this.#views, (tid) => allowedOf(this.#deps.affinity, tid));

  async run(signal: AbortSignal): Promise<void> {
    const { launchers, assignments, onLaunchers, record } = this.#deps;
    const guard = new Guard();
    // A list of pods arrives as one change for each pod.
    const passes = new Throttle(
      guard.wrap(() => this.#passAndPlan(signal, passes)),
      0,
      PASS_REST_FACTOR,
    );
    const passForAll = () => {
      this.#isFull = true;
      passes.soon();
    };
    // The agent's lock is held from here on.
    record.load(signal, () => {
      // Each guest takes its record again.
      this.#launcherChecks.end();
      passForAll();
    });
    const ends = [onLaunchers(passForAll), assignments.subscribe(passForAll)];
    passForAll();
    try {
      await Promise.race([launchers.run(signal), guard.until(signal)]);
    } finally {
      for (const unsubscribe of ends) unsubscribe();
      clearTimeout(this.#timer);
      passes.cancel();
      this.#launcherChecks.end();
      this.#views = [];
      this.#reportOverlaps();
      this.#publish();
    }
  }

  #passAndPlan(signal: AbortSignal, passes: Throttle): void {
    clearTimeout(this.#timer);
    if (signal.aborted) return;
    const onlyStarting = !this.#isFull;
    this.#isFull = false;
    const next = this.#pass(onlyStarting);
    if (next === undefined) return;
    this.#timer = setTimeout(() => {
      this.#isFull ||= performance.now() >= this.#nextFull;
      passes.soon();
    }, next);
  }

  /** @returns milliseconds until the next pass; undefined if no launcher needs another check */
  #pass(onlyStarting: boolean): number | undefined {
    const { launchers, record, host } = this.#deps;
    const { reserved, owned, assignments } = this.#deps.assignments.view();
    const dedicated = new Set(assignments.filter(({ container }) => container === COMPUTE).map(({ podUID }) => podUID));
    const present = [...launchers.items.values()].filter((launcher) => launcher !== undefined);
    const managed = present.filter(
      ({ uid, maskRequest, problem }) =>
        maskRequest !== undefined || problem !== undefined || dedicated.has(uid) || record.has(uid),
    );
    this.#views = this.#launcherChecks.at(managed, { host: host(), reserved, owned, dedicated }, onlyStarting);
    this.#reporting.views(this.#views);
    this.#reportOverlaps();
    this.#publish();
    if (managed.length === 0) return undefined;
    if (!onlyStarting) this.#nextFull = performance.now() + this.#deps.checkInterval * 1000;
    const untilFull = Math.max(0, Math.ceil(this.#nextFull - performance.now()));
    return this.#launcherChecks.hasStarting() ? Math.min(STARTING_POLL_MILLISECONDS, untilFull) : untilFull;
  }

  #reportOverlaps(): void {
    const text = this.#views
      .map(({ launcher, mask }) => `${launcher.uid} ${mask?.pins.map(({ cpus }) => cpus)}`)
      .join();
    if (text === this.#pinsText) return;
    this.#pinsText = text;
    this.#reporting.overlaps(maskOverlaps(this.#views));
  }

  #publish(): void {
    const before = JSON.stringify(this.#states);
    this.#states = pinningStates(this.#views);
    if (JSON.stringify(this.#states) !== before) this.#listeners.notify();
  }
}
