import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import {
  type ConflistOptions,
  formatGateSettings,
  GATE_FILES,
  GATE_PLUGIN,
  GATE_SETTINGS,
  type GateSettings,
  MOST_CONF,
} from '../../model/cni/conflist.ts';
import { type ConfFile, choosePrimary, planConflist } from '../../model/cni/primary.ts';
import { everyAligned } from '../../runtime/aligned.ts';
import type { Logger } from '../../runtime/log.ts';
import { watchDirectory } from '../files/watch-directory.ts';
import { createGuard, untilAborted } from '../lifecycle/duty.ts';
import type { AgentMetrics } from '../telemetry/metrics.ts';
import { contentOf, placeFile, removeFile } from './place-file.ts';

/** Seconds between checks in case an event was lost. */
const SAFETY = 5;
/**
 * Minimum seconds between two writes: if another program keeps removing the gate's file, the agent must not fight it at
 * full speed.
 */
const PACE = 1;
/** Bytes. The shim has 40 kB. */
const MOST_SHIM = 16 * 1024 * 1024;

/** The directories of the gate's files. */
export interface GatePlaces {
  /** Where the runtime looks for plugins and for configurations. */
  readonly binDir: string;
  readonly confDir: string;
  /** Plugins that the gate replaces by name, in a directory that precedes theirs in CNI_PATH. */
  readonly interpose: { readonly dir: string; readonly plugins: readonly string[] };
}

export interface InstallerDeps extends GatePlaces {
  /** The shim in the agent's own image. */
  readonly shim: string;
  readonly conflist: ConflistOptions;
  /** The shim's settings, in a file in its own directory. */
  readonly settings: GateSettings;
  /** Whether the duty removes the configuration when it ends normally. */
  readonly atEnd: 'remove' | 'keep';
  readonly log: Logger;
  readonly metrics: AgentMetrics;
  /** Seconds between two writes; default 1. */
  readonly pace?: number;
}

/**
 * Installs the gate in front of the runtime's primary network and keeps it there. It installs the shim in the plugins'
 * directory, and a configuration that sorts first. It writes the configuration again when the primary changes, and
 * removes it when the primary is removed. The shim reads its settings from a file in its own directory: anyone who can
 * write there can also replace the shim, and no author of a network configuration can.
 *
 * When the duty ends normally, it removes the configuration, unless the next agent keeps it, and the runtime uses its
 * primary again: an uninstalled agent leaves nothing behind that only the agent could undo. The shim stays, because
 * runtimes call a sandbox's plugins again to remove the sandbox; without its configuration nothing else calls it.
 */
export function createInstaller(deps: InstallerDeps) {
  const { shim, conflist, settings, atEnd, log, metrics, pace = PACE, ...places } = deps;
  const { confDir } = places;
  let lastProblem: string | undefined;
  let writtenAt = Number.NEGATIVE_INFINITY;

  const placeShim = () => {
    const program = contentOf(shim, MOST_SHIM);
    if (program === undefined) throw new Error(`cannot read ${shim}: the agent's image has no shim; check --gate-shim`);
    const own = Buffer.from(formatGateSettings(settings));
    // Write the settings before the program, which would otherwise run with other settings until then.
    for (const path of settingsFiles(places))
      if (placeFile(path, own, 0o644)) log.info({ path }, 'gate settings written');
    for (const path of [...programs(places), ...interposed(places)])
      if (placeFile(path, program, 0o755)) log.info({ path }, 'gate plugin installed');
  };

  const say = (problem: string | undefined) => {
    if (problem !== undefined && problem !== lastProblem)
      log.warn({ problem }, 'gate incomplete: new pods may start without it');
    lastProblem = problem;
  };

  /** Checks the directory once. @returns seconds until the next check, if a write was postponed */
  const look = (now: number): number | undefined => {
    const plan = planConflist(readConfFiles(confDir), conflist);
    if (plan.kind === 'write') {
      const wait = writtenAt + pace - now;
      if (wait > 0) return wait;
      writtenAt = now;
      placeFile(join(confDir, plan.name), Buffer.from(plan.text), 0o600);
      log.info({ file: plan.name, primary: plan.primary }, 'gate installed before the primary network');
    } else if (plan.kind === 'remove') {
      log.warn({ files: plan.remove }, 'gate configuration removed: the primary network is gone');
    }
    if (plan.kind !== 'keep') for (const name of plan.remove) removeFile(join(confDir, name));
    const problem = plan.kind === 'keep' ? plan.problem : undefined;
    say(problem);
    const inPlace = problem === undefined && ownFiles(confDir).some((path) => existsSync(path));
    metrics.gateInstalled.set(inPlace ? 1 : 0);
    return undefined;
  };

  return {
    /** The duty. @throws a system error if it cannot write a file */
    async run(signal: AbortSignal): Promise<void> {
      const guard = createGuard();
      let putOff: NodeJS.Timeout | undefined;
      const guarded = guard(() => {
        clearTimeout(putOff);
        const wait = look(performance.now() / 1000);
        if (wait !== undefined) putOff = setTimeout(guarded, wait * 1000);
      });
      placeShim();
      watchDirectory({ path: confDir, signal, onChange: guarded });
      guarded();
      const endLooks = everyAligned(SAFETY, guarded);
      try {
        await Promise.race([untilAborted(signal), guard.failed]);
      } finally {
        endLooks();
        clearTimeout(putOff);
      }
      if (atEnd === 'keep') return;
      const [, ...inFront] = settingsFiles(places);
      const removed = [...ownFiles(confDir), ...interposed(places), ...inFront].filter((path) => removeFile(path));
      if (removed.length > 0) log.info({ removed }, 'gate removed from the primary network');
      metrics.gateInstalled.set(0);
    },
  };
}

/** Removes all files that an installer wrote, including the shim. @returns the paths that existed */
export function uninstall(places: GatePlaces): string[] {
  const paths = [...ownFiles(places.confDir), ...interposed(places), ...programs(places), ...settingsFiles(places)];
  return paths.filter((path) => removeFile(path));
}

function ownFiles(confDir: string): string[] {
  return Object.values(GATE_FILES).map((name) => join(confDir, name));
}

function interposed({ interpose: { dir, plugins } }: GatePlaces): string[] {
  return plugins.map((plugin) => join(dir, plugin));
}

function programs({ binDir }: GatePlaces): string[] {
  return [join(binDir, GATE_PLUGIN)];
}

/** The paths of the settings: one in each directory that contains the program, the runtime's own directory first. */
function settingsFiles({ binDir, interpose: { dir, plugins } }: GatePlaces): string[] {
  return [binDir, ...(plugins.length > 0 ? [dir] : [])].map((directory) => join(directory, GATE_SETTINGS));
}

/** Reads the primary's and the gate's own files. Other files do not matter. */
function readConfFiles(directory: string): ConfFile[] {
  let names: string[];
  try {
    const entries = readdirSync(directory, { withFileTypes: true }).filter((entry) => !entry.isDirectory());
    names = entries.map(({ name }) => name);
  } catch {
    // Without the directory there is no network.
    return [];
  }
  const primary = choosePrimary(names.map((name) => ({ name, text: undefined })))?.name;
  const own: readonly string[] = Object.values(GATE_FILES);
  return names
    .filter((name) => name === primary || own.includes(name))
    .map((name) => ({ name, text: contentOf(join(directory, name), MOST_CONF)?.toString('utf8') }));
}
