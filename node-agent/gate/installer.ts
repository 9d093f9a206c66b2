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
import type { Logger } from '../../runtime/log.ts';
import { watchDirectory } from '../files/watch-directory.ts';
import { createGuard, untilAborted } from '../lifecycle/duty.ts';
import type { AgentMetrics } from '../telemetry/metrics.ts';
import { contentOf, placeFile, removeFile } from './place-file.ts';

/** Seconds between looks in case an event was lost. */
const SAFETY = 5;
/** Seconds between two writes: a program that takes the gate's file away each time must not be fought at full speed. */
const PACE = 1;
/** Bytes; the shim has 40 kB. */
const MOST_SHIM = 16 * 1024 * 1024;

/** Where the gate is put. */
export interface GatePlaces {
  /** Where the runtime looks for plugins, and where for configurations. */
  readonly binDir: string;
  readonly confDir: string;
  /** Plugins that the gate is put before by name, in a directory that CNI_PATH has before theirs. */
  readonly interpose: { readonly dir: string; readonly plugins: readonly string[] };
}

export interface InstallerDeps extends GatePlaces {
  /** The shim in the agent's own image. */
  readonly shim: string;
  readonly conflist: ConflistOptions;
  /** What the shim goes by, in a file in its own directory. */
  readonly settings: GateSettings;
  /** What becomes of the configuration when the duty ends in order. */
  readonly atEnd: 'remove' | 'keep';
  readonly log: Logger;
  readonly metrics: AgentMetrics;
  /** Seconds between two writes; default 1. */
  readonly pace?: number;
}

/**
 * Puts the gate in front of the runtime's primary network, and keeps it there: the shim in the plugins' directory, and
 * a configuration of its own that sorts first, made again whenever the primary changes and taken away when the primary
 * is. What the shim goes by is in a file in its own directory: who can write there can replace the shim as well, and no
 * author of a network configuration can.
 *
 * When the duty ends in order the configuration goes, unless it is to be kept for the next agent, and the runtime is back
 * at its primary: an agent that is stopped for good leaves nothing that only it could undo. The shim stays, because
 * runtimes call the plugins that a sandbox was made with to take it down again; without its configuration nothing else
 * calls it.
 */
export function createInstaller(deps: InstallerDeps) {
  const { shim, conflist, settings, atEnd, log, metrics, pace = PACE, ...places } = deps;
  const { confDir } = places;
  let lastProblem: string | undefined;
  let writtenAt = Number.NEGATIVE_INFINITY;

  const placeShim = () => {
    const program = contentOf(shim, MOST_SHIM);
    if (program === undefined) throw new Error(`${shim} cannot be read: the image of the agent has no shim`);
    const own = Buffer.from(formatGateSettings(settings));
    // Before the program, which would go by other settings until then.
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

  /** One look at the directory. @returns seconds until another is due, if it had to be put off */
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
    /** The duty. @throws Error of the system when a file cannot be put in place */
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
      const timer = setInterval(guarded, SAFETY * 1000);
      try {
        await Promise.race([untilAborted(signal), guard.failed]);
      } finally {
        clearInterval(timer);
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

/** Takes away what an installer has put in place, the shim included. @returns the paths that were there */
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

/** One in each directory that has the program in it, the runtime's own first. */
function settingsFiles({ binDir, interpose: { dir, plugins } }: GatePlaces): string[] {
  return [binDir, ...(plugins.length > 0 ? [dir] : [])].map((directory) => join(directory, GATE_SETTINGS));
}

/** The primary and the gate's own files; what else is there decides nothing, and is not read. */
function readConfFiles(directory: string): ConfFile[] {
  let names: string[];
  try {
    const entries = readdirSync(directory, { withFileTypes: true }).filter((entry) => !entry.isDirectory());
    names = entries.map(({ name }) => name);
  } catch {
    // No directory, no network.
    return [];
  }
  const primary = choosePrimary(names.map((name) => ({ name, text: undefined })))?.name;
  const own: readonly string[] = Object.values(GATE_FILES);
  return names
    .filter((name) => name === primary || own.includes(name))
    .map((name) => ({ name, text: contentOf(join(directory, name), MOST_CONF)?.toString('utf8') }));
}
