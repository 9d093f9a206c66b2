import type { PinningState } from '../../kube/node-topology.ts';
import type { Reflector } from '../../kube/reflector.ts';
import type { Host } from '../../model/host.ts';
import { COMPUTE } from '../../model/shapes.ts';
import type { Assignments } from '../assignments/assignments.ts';
import { Guard, Listeners, type Services, Throttle } from '../lifecycle/duty.ts';
import { allowedOf } from '../processes/proc.ts';
import {
  createLauncherChecks,
  type LauncherPinningParts,
  type LauncherView,
  type NodeCpus,
} from './launcher-pinning.ts';
import type { Launcher } from './launchers.ts';
import { createReporting, maskOverlaps, pinningStates, statusOf } from './reporting.ts';

/** The pause after a pass, as a multiple of its duration. */
const PASS_REST_FACTOR = 3;
/** Milliseconds between passes while a VM with a mask is starting: without a paused start the guest runs at once. */
const STARTING_POLL_MILLISECONDS = 100;

export interface VmPinningDeps extends LauncherPinningParts, Omit<Services, 'client'> {
  readonly launchers: Pick<Reflector<Launcher | undefined>, 'items' | 'run'>;
  /** Calls the listener when a launcher has changed. @returns a function that ends the subscription */
  readonly onLaunchers: (listener: () => void) => () => void;
  readonly assignments: Pick<Assignments, 'view' | 'subscribe'>;
  readonly host: () => Host | undefined;
  readonly checkInterval: number;
}

export type VmPinning = ReturnType<typeof createVmPinning>;

/**
 * A launcher's cgroup lists its processes and CPUs; the names of QEMU's threads show their roles. Besides changes, a
 * timer causes passes, since no event reports that virt-handler or libvirt moved a thread, or that QEMU started.
 * Invariant: no thread gets a CPU outside its container's cpuset.
 */
export function createVmPinning(deps: VmPinningDeps) {
  const { launchers, assignments, checkInterval } = deps;
  const listeners = new Listeners();
  const reporting = createReporting(deps);
  const launcherChecks = createLauncherChecks(deps, reporting.forget);
  let views: readonly LauncherView[] = [];
  let states: readonly PinningState[] = [];
  let statesText = '[]';
  let pinsText = '';
  let nextFull = 0;

  const publish = () => {
    states = pinningStates(views);
    const text = JSON.stringify(states);
    if (text === statesText) return;
    statesText = text;
    listeners.notify();
  };

  const tellOverlaps = () => {
    const text = views.map(({ launcher, mask }) => `${launcher.uid} ${mask?.pins.map(({ cpus }) => cpus)}`).join();
    if (text === pinsText) return;
    pinsText = text;
    reporting.overlaps(maskOverlaps(views));
  };

  const nodeCpus = (): NodeCpus => {
    const { reserved, owned, assignments: owners } = assignments.view();
    const dedicated = new Set(owners.filter(({ container }) => container === COMPUTE).map(({ podUID }) => podUID));
    return { host: deps.host(), reserved, owned, dedicated };
  };

  const isManaged = ({ uid, maskRequest, problem }: Launcher, { dedicated }: NodeCpus) =>
    maskRequest !== undefined || problem !== undefined || dedicated.has(uid) || deps.record.has(uid);

  /** @returns milliseconds until the next pass; undefined if no launcher needs another check */
  const pass = (launchers: Iterable<Launcher | undefined>, onlyStarting: boolean): number | undefined => {
    const node = nodeCpus();
    const present = [...launchers].filter((launcher) => launcher !== undefined);
    const managed = present.filter((launcher) => isManaged(launcher, node));
    views = launcherChecks.at(managed, node, onlyStarting);
    reporting.views(views);
    tellOverlaps();
    publish();
    if (managed.length === 0) return undefined;
    if (!onlyStarting) nextFull = performance.now() + checkInterval * 1000;
    const untilFull = Math.max(0, Math.ceil(nextFull - performance.now()));
    return launcherChecks.hasStarting() ? Math.min(STARTING_POLL_MILLISECONDS, untilFull) : untilFull;
  };

  const end = () => {
    launcherChecks.end();
    views = [];
    tellOverlaps();
    publish();
  };

  return {
    pinning: () => states,
    subscribe: listeners.subscribe,
    status: () => statusOf(views, (tid) => allowedOf(deps.affinity, tid)),

    async run(signal: AbortSignal) {
      const guard = new Guard();
      let timer: NodeJS.Timeout | undefined;
      let isFull = true;
      // A list of pods arrives as one change for each pod.
      const passes = new Throttle(guard.wrap(work), 0, PASS_REST_FACTOR);
      function work() {
        clearTimeout(timer);
        timer = undefined;
        if (signal.aborted) return;
        const onlyStarting = !isFull;
        isFull = false;
        const next = pass(launchers.items.values(), onlyStarting);
        if (next !== undefined) timer = setTimeout(passByClock, next);
      }
      function passByClock() {
        isFull ||= performance.now() >= nextFull;
        passes.soon();
      }
      const passForAll = () => {
        isFull = true;
        passes.soon();
      };
      const ends = [deps.onLaunchers(passForAll), assignments.subscribe(passForAll)];
      passForAll();
      try {
        await Promise.race([launchers.run(signal), guard.until(signal)]);
      } finally {
        for (const unsubscribe of ends) unsubscribe();
        clearTimeout(timer);
        passes.cancel();
        end();
      }
    },
  };
}
