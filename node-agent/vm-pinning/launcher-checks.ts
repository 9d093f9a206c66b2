import { ProblemLog } from '../../runtime/problem-log.ts';
import { UnreadableError } from '../processes/readable.ts';
import type { AgentLogger, AgentMessages } from '../telemetry/log-messages.ts';
import {
  idleView,
  LauncherPinning,
  type LauncherPinningParts,
  type LauncherView,
  type NodeCpus,
} from './launcher-pinning.ts';
import type { Launcher } from './launchers.ts';

/** Milliseconds after the first sight of its container within which a VM should have its vCPU threads. */
const MAX_STARTING_MILLISECONDS = 60_000;

interface CheckedLauncher {
  readonly launcher: Launcher;
  readonly view: LauncherView;
  /** When its container was first seen, in monotonic milliseconds. */
  readonly since: number | undefined;
}

/**
 * Owner: the passes, for each managed launcher. Age: as of the last check that could read the launcher's cgroup and
 * threads. End: when the launcher is no longer managed, and has what a mask had moved back.
 */
export class LauncherChecks {
  readonly #parts: LauncherPinningParts;
  readonly #onForgotten: (uid: string) => void;
  readonly #pinnings = new Map<string, LauncherPinning>();
  readonly #checked = new Map<string, CheckedLauncher>();
  readonly #problems: ProblemLog<AgentMessages>;

  /** @param onForgotten called with the uid of each launcher that is no longer managed */
  constructor(parts: LauncherPinningParts & { readonly log: AgentLogger }, onForgotten: (uid: string) => void) {
    this.#parts = parts;
    this.#onForgotten = onForgotten;
    this.#problems = new ProblemLog(parts.log);
  }

  /** Releases all others that were checked before. @param onlyStarting reuses the last check of those that run */
  at(launchers: readonly Launcher[], node: NodeCpus, onlyStarting: boolean): LauncherView[] {
    const unreadable: UnreadableError[] = [];
    this.#forgetOthers(new Set(launchers.map(({ uid }) => uid)), unreadable);
    const views = launchers.map((launcher) => this.#reconcile(launcher, node, onlyStarting, unreadable));
    const [first] = unreadable;
    if (first !== undefined) this.#problems.failed(first, 'reading a VM’s threads failed; keeping their last state');
    else if (!onlyStarting) this.#problems.recovered();
    return views;
  }

  /** Whether a VM with a mask is about to get its threads. No event reports that they exist. */
  hasStarting(): boolean {
    return [...this.#checked.values()].some(isStarting);
  }

  end(): void {
    this.#pinnings.clear();
    this.#checked.clear();
  }

  #forgetOthers(uids: ReadonlySet<string>, unreadable: UnreadableError[]): void {
    for (const [uid, pinning] of this.#pinnings) {
      if (uids.has(uid)) continue;
      try {
        // A pod that still exists has lost its mask.
        pinning.release();
      } catch (error) {
        if (!(error instanceof UnreadableError)) throw error;
        unreadable.push(error);
        continue;
      }
      this.#pinnings.delete(uid);
      this.#checked.delete(uid);
      this.#onForgotten(uid);
    }
  }

  #reconcile(launcher: Launcher, node: NodeCpus, onlyStarting: boolean, unreadable: UnreadableError[]): LauncherView {
    const { uid } = launcher;
    const last = this.#checked.get(uid);
    if (onlyStarting && last?.launcher === launcher && !isStarting(last)) return unchanged(last.view);
    const since = last?.since ?? (launcher.containerId === undefined ? undefined : performance.now());
    const pinning = this.#pinnings.get(uid) ?? new LauncherPinning(this.#parts);
    this.#pinnings.set(uid, pinning);
    let view: LauncherView;
    try {
      view = pinning.reconcile(launcher, node);
    } catch (error) {
      if (!(error instanceof UnreadableError)) throw error;
      unreadable.push(error);
      view = last === undefined ? idleView(launcher, node) : unchanged(last.view);
    }
    this.#checked.set(uid, { launcher, view, since });
    return view;
  }
}

function isStarting({ launcher: { maskRequest }, view: { mask }, since }: CheckedLauncher): boolean {
  const isWaiting = maskRequest !== undefined && mask === undefined && since !== undefined;
  return isWaiting && performance.now() - since < MAX_STARTING_MILLISECONDS;
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
