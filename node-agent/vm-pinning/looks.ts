import {
  createLauncherKeeper,
  type KeeperParts,
  type LauncherKeeper,
  type LauncherView,
  type NodeCpus,
} from './launcher-keeper.ts';
import type { Launcher } from './launchers.ts';

/**
 * A look that takes longer than DEAR milliseconds is of a launcher that has far more processes or threads than a VM needs.
 * It is looked at again after REST times as long: what it takes is from its own share, and the others' threads are kept as
 * ever.
 */
const DEAR = 20;
const REST = 50;
/** Milliseconds from the first sight of its container within which a VM is expected to have its vCPU threads. */
const MOST_STARTING = 60_000;

/** A launcher's last look, and until when it must do (monotonic milliseconds). */
interface Looked {
  readonly launcher: Launcher;
  readonly view: LauncherView;
  readonly until: number;
  /** When its container was seen first. */
  readonly since: number | undefined;
}

/** The keepers of the launchers that are looked after. */
export interface Looks {
  /**
   * Looks at each of them, and releases all others that were looked at before.
   * @param onlyStarting take the last look at those that are not about to start
   */
  at(launchers: readonly Launcher[], node: NodeCpus, onlyStarting: boolean): readonly LauncherView[];
  /** Whether a VM with a mask is about to get its threads: nothing says when they are there. */
  hasStarting(): boolean;
  /** @param release gives every thread that a mask had put somewhere its container's CPUs back */
  end(release: boolean): void;
}

/** @param onForgotten called with the uid of each launcher that is no longer looked after */
export function createLooks(parts: KeeperParts, onForgotten: (uid: string) => void): Looks {
  const keepers = new Map<string, LauncherKeeper>();
  const looked = new Map<string, Looked>();

  const forgetOthers = (uids: ReadonlySet<string>) => {
    for (const [uid, keeper] of keepers) {
      if (uids.has(uid)) continue;
      // A pod that is still there has lost its mask.
      keeper.release();
      keepers.delete(uid);
      looked.delete(uid);
      onForgotten(uid);
    }
  };

  const isStarting = ({ launcher: { wish }, view: { mask }, since }: Looked) =>
    wish !== undefined && mask === undefined && since !== undefined && performance.now() - since < MOST_STARTING;

  const look = (launcher: Launcher, node: NodeCpus, onlyStarting: boolean): LauncherView => {
    const { uid } = launcher;
    const last = looked.get(uid);
    const begun = performance.now();
    const isSkipped = last !== undefined && (begun < last.until || (onlyStarting && !isStarting(last)));
    if (last?.launcher === launcher && isSkipped) return unchanged(last.view);
    const keeper = keepers.get(uid) ?? createLauncherKeeper(parts);
    keepers.set(uid, keeper);
    const view = keeper.look(launcher, node);
    const ended = performance.now();
    const cost = ended - begun;
    const since = last?.since ?? (launcher.containerId === undefined ? undefined : begun);
    looked.set(uid, { launcher, view, until: cost > DEAR ? ended + REST * cost : 0, since });
    return view;
  };

  return {
    at(launchers, node, onlyStarting) {
      forgetOthers(new Set(launchers.map(({ uid }) => uid)));
      return launchers.map((launcher) => look(launcher, node, onlyStarting));
    },
    hasStarting: () => [...looked.values()].some(isStarting),
    end(release) {
      if (release) for (const keeper of keepers.values()) keeper.release();
      keepers.clear();
      looked.clear();
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
