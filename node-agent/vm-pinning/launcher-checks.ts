import {
  createLauncherPinning,
  type LauncherPinning,
  type LauncherPinningParts,
  type LauncherView,
  type NodeCpus,
} from './launcher-pinning.ts';
import type { Launcher } from './launchers.ts';

/**
 * A check that takes more than DEAR milliseconds is of a launcher with far more processes or threads than a VM needs.
 * Its next check follows after REST times that duration, so that it delays only itself and not the other launchers.
 */
const DEAR = 20;
const REST = 50;
/** Milliseconds after the first sight of its container within which a VM should have its vCPU threads. */
const MOST_STARTING = 60_000;

/** A launcher's last check, and until when it is reused (monotonic milliseconds). */
interface CheckedLauncher {
  readonly launcher: Launcher;
  readonly view: LauncherView;
  readonly until: number;
  /** When its container was first seen. */
  readonly since: number | undefined;
}

/**
 * The pinning of every launcher on this node.
 * @param onForgotten called with the uid of each launcher that is no longer managed
 */
export function createLauncherChecks(parts: LauncherPinningParts, onForgotten: (uid: string) => void) {
  const pinnings = new Map<string, LauncherPinning>();
  const checked = new Map<string, CheckedLauncher>();

  const forgetOthers = (uids: ReadonlySet<string>) => {
    for (const [uid, pinning] of pinnings) {
      if (uids.has(uid)) continue;
      // A pod that still exists has lost its mask.
      pinning.release();
      pinnings.delete(uid);
      checked.delete(uid);
      onForgotten(uid);
    }
  };

  const isStarting = ({ launcher: { maskRequest }, view: { mask }, since }: CheckedLauncher) =>
    maskRequest !== undefined && mask === undefined && since !== undefined && performance.now() - since < MOST_STARTING;

  const look = (launcher: Launcher, node: NodeCpus, onlyStarting: boolean): LauncherView => {
    const { uid } = launcher;
    const last = checked.get(uid);
    const begun = performance.now();
    const isSkipped = last !== undefined && (begun < last.until || (onlyStarting && !isStarting(last)));
    if (last?.launcher === launcher && isSkipped) return unchanged(last.view);
    const pinning = pinnings.get(uid) ?? createLauncherPinning(parts);
    pinnings.set(uid, pinning);
    const view = pinning.look(launcher, node);
    const ended = performance.now();
    const cost = ended - begun;
    const since = last?.since ?? (launcher.containerId === undefined ? undefined : begun);
    checked.set(uid, { launcher, view, until: cost > DEAR ? ended + REST * cost : 0, since });
    return view;
  };

  return {
    /**
     * Checks each of them, and releases all others that were checked before.
     * @param onlyStarting reuses the last check of launchers that are not about to start
     */
    at(launchers: readonly Launcher[], node: NodeCpus, onlyStarting: boolean) {
      forgetOthers(new Set(launchers.map(({ uid }) => uid)));
      return launchers.map((launcher) => look(launcher, node, onlyStarting));
    },
    /** Whether a VM with a mask is about to get its threads. No event reports that they exist. */
    hasStarting: () => [...checked.values()].some(isStarting),
    /** Ends the work. Threads keep their CPUs. */
    end() {
      pinnings.clear();
      checked.clear();
    },
  };
}

/** The view of a check that was not repeated, without the changes that the check made. */
function unchanged(view: LauncherView): LauncherView {
  const { mask, housekeeping } = view;
  return {
    ...view,
    mask: mask && { ...mask, moved: 0 },
    housekeeping: housekeeping && { ...housekeeping, repairs: 0 },
  };
}
