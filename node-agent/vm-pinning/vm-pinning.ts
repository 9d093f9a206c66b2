import type { PinningState } from '../../kube/node-topology.ts';
import type { Host } from '../../model/host.ts';
import { COMPUTE } from '../../model/launcher/shapes.ts';
import type { Assignments } from '../assignments/assignments.ts';
import { createGuard, untilAborted } from '../duty.ts';
import { createPaced } from '../paced.ts';
import { allowedOf } from './guest.ts';
import {
  createLauncherKeeper,
  type KeeperParts,
  type LauncherKeeper,
  type LauncherView,
  type NodeCpus,
} from './launcher-keeper.ts';
import type { Launcher } from './launchers.ts';
import { maskOverlaps, pinningStates } from './states.ts';
import { statusOf, type VmStatus } from './status.ts';
import { createTeller, type TellerDeps } from './tell.ts';

/**
 * A look that takes longer than DEAR milliseconds is of a launcher that has far more processes or threads than a VM needs.
 * It is looked at again after REST times as long: what it takes is from its own share, and the others' threads are kept as
 * ever. A pass as a whole is followed by PASS_REST times as long without one.
 */
const DEAR = 20;
const REST = 50;
const PASS_REST = 3;

/** A launcher's last look, and until when it must do (monotonic milliseconds). */
interface Looked {
  readonly launcher: Launcher;
  readonly view: LauncherView;
  readonly until: number;
}

export interface VmPinningDeps extends KeeperParts, TellerDeps {
  /** Follows the launchers of this node until the signal aborts. */
  readonly watch: (onChange: () => void) => {
    readonly items: ReadonlyMap<string, Launcher | undefined>;
    run(signal: AbortSignal): Promise<void>;
  };
  readonly assignments: Pick<Assignments, 'view' | 'subscribe'>;
  readonly host: () => Host | undefined;
  /** Seconds between looks at the VMs that there is something to keep of. */
  readonly checkInterval: number;
  /** What becomes of vCPUs that a mask has put somewhere when the duty ends. */
  readonly pinsAtEnd: 'restore' | 'leave';
}

export interface VmPinning {
  /** The duty: keeps masks and housekeeping of this node's launchers. */
  run(signal: AbortSignal): Promise<void>;
  /** For the report: VMs with a mask. */
  pinning(): readonly PinningState[];
  /** Calls back when `pinning` has changed. @returns a function that ends that */
  subscribe(listener: () => void): () => void;
  /** For people: every thread, where it may run and where it should. */
  status(): VmStatus;
}

/**
 * A pass looks at each launcher that has a mask or CPUs of its own, and at no other: its cgroup says which processes and
 * CPUs it has, QEMU's names of threads what each is for. Passes follow the pods, the assignments, and a clock, since
 * nobody tells when virt-handler or libvirt has moved a thread; the clock stands still while there is no such launcher.
 *
 * Invariant: a thread is given no CPU outside of its container's cpuset.
 */
export function createVmPinning(deps: VmPinningDeps): VmPinning {
  const { assignments, checkInterval, pinsAtEnd } = deps;
  const keepers = new Map<string, LauncherKeeper>();
  const listeners = new Set<() => void>();
  const tell = createTeller(deps);
  const looked = new Map<string, Looked>();
  let views: readonly LauncherView[] = [];
  let states: readonly PinningState[] = [];
  let statesText = '[]';
  let pinsText = '';

  const publish = () => {
    states = pinningStates(views);
    const text = JSON.stringify(states);
    if (text === statesText) return;
    statesText = text;
    for (const listener of listeners) listener();
  };

  const tellOverlaps = () => {
    const text = views.map(({ launcher, mask }) => `${launcher.uid} ${mask?.pins.map(({ cpus }) => cpus)}`).join();
    if (text === pinsText) return;
    pinsText = text;
    tell.overlaps(maskOverlaps(views));
  };

  const nodeCpus = (): NodeCpus => {
    const { reserved, owned, assignments: held } = assignments.view();
    const dedicated = new Set(held.filter(({ container }) => container === COMPUTE).map(({ podUID }) => podUID));
    return { host: deps.host(), reserved, owned, dedicated };
  };

  const isKept = ({ uid, wish, problem }: Launcher, { dedicated }: NodeCpus) =>
    wish !== undefined || problem !== undefined || dedicated.has(uid);

  const forgetOthers = (uids: ReadonlySet<string>) => {
    for (const [uid, keeper] of keepers) {
      if (uids.has(uid)) continue;
      // A pod that is still there has lost its mask.
      keeper.release();
      keepers.delete(uid);
      looked.delete(uid);
      tell.forget(uid);
    }
  };

  const look = (launcher: Launcher, node: NodeCpus): LauncherView => {
    const { uid } = launcher;
    const last = looked.get(uid);
    const begun = performance.now();
    if (last?.launcher === launcher && begun < last.until) return unchanged(last.view);
    const keeper = keepers.get(uid) ?? createLauncherKeeper(deps);
    keepers.set(uid, keeper);
    const view = keeper.look(launcher, node);
    const ended = performance.now();
    const cost = ended - begun;
    looked.set(uid, { launcher, view, until: cost > DEAR ? ended + REST * cost : 0 });
    return view;
  };

  /** @returns whether there is anything that needs looking at again */
  const pass = (launchers: Iterable<Launcher | undefined>): boolean => {
    const node = nodeCpus();
    const present = [...launchers].filter((launcher) => launcher !== undefined);
    const kept = present.filter((launcher) => isKept(launcher, node));
    forgetOthers(new Set(kept.map(({ uid }) => uid)));
    views = kept.map((launcher) => look(launcher, node));
    tell.views(views);
    tellOverlaps();
    publish();
    return kept.length > 0;
  };

  const end = () => {
    if (pinsAtEnd === 'restore') for (const keeper of keepers.values()) keeper.release();
    keepers.clear();
    looked.clear();
    views = [];
    tellOverlaps();
    publish();
  };

  return {
    pinning: () => states,
    subscribe(listener) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    status: () => statusOf(views, (tid) => allowedOf(deps.affinity, tid)),

    async run(signal) {
      const guard = createGuard();
      let timer: NodeJS.Timeout | undefined;
      const work = guard(() => {
        clearTimeout(timer);
        timer = undefined;
        if (!signal.aborted && pass(watched.items.values())) timer = setTimeout(paced.soon, checkInterval * 1000);
      });
      // A list of pods comes as one change for each of them.
      const paced = createPaced({ work, settle: 0, rest: PASS_REST });
      const watched = deps.watch(paced.soon);
      const unsubscribe = assignments.subscribe(paced.soon);
      paced.soon();
      try {
        await Promise.race([watched.run(signal), untilAborted(signal), guard.failed]);
      } finally {
        unsubscribe();
        clearTimeout(timer);
        paced.cancel();
        end();
      }
    },
  };
}

/** The view of a look that was not repeated: what it did is not done again. */
function unchanged(view: LauncherView): LauncherView {
  const { mask, housekeeping } = view;
  return {
    ...view,
    mask: mask && { ...mask, moved: 0 },
    housekeeping: housekeeping && { ...housekeeping, repairs: 0 },
  };
}
