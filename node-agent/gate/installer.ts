import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { type ConflistOptions, GATE_CONFLIST, GATE_PLUGIN } from '../../model/cni/conflist.ts';
import { type ConfFile, planConflist } from '../../model/cni/primary.ts';
import type { Logger } from '../../runtime/log.ts';
import { createGuard, untilAborted } from '../duty.ts';
import type { AgentMetrics } from '../metrics.ts';
import { watchDirectory } from '../watch-directory.ts';
import { contentOf, placeFile, removeFile } from './place-file.ts';

/** Seconds between looks in case an event was lost. */
const SAFETY = 5;

export interface InstallerDeps {
  /** The shim in the agent's own image. */
  readonly shim: string;
  /** Where the runtime looks for plugins, and where for configurations. */
  readonly binDir: string;
  readonly confDir: string;
  readonly conflist: ConflistOptions;
  /** Plugins that the gate is put before by name, in a directory that CNI_PATH has before theirs. */
  readonly interpose: { readonly dir: string; readonly plugins: readonly string[] };
  readonly log: Logger;
  readonly metrics: AgentMetrics;
}

/**
 * Puts the gate in front of the runtime's primary network, and keeps it there: the shim in the plugins' directory, and
 * a list of its own that sorts first, made anew whenever the primary changes and taken away when the primary is.
 *
 * When the duty ends in order the list goes, and the runtime is back at its primary: an agent that is stopped for good
 * leaves nothing that only it could undo. The shim stays, because runtimes call the plugins that a sandbox was made
 * with to take it down again; without its list it is called by nobody else.
 */
export function createInstaller({ shim, binDir, confDir, conflist, interpose, log, metrics }: InstallerDeps) {
  const own = join(confDir, GATE_CONFLIST);
  let lastProblem: string | undefined;

  const placeShim = () => {
    const program = contentOf(shim);
    if (program === undefined) throw new Error(`${shim} cannot be read: the image of the agent has no shim`);
    const paths = [join(binDir, GATE_PLUGIN), ...interpose.plugins.map((plugin) => join(interpose.dir, plugin))];
    for (const path of paths) if (placeFile(path, program, 0o755)) log.info({ path }, 'put the gate in place');
  };

  const say = (problem: string | undefined) => {
    if (problem !== undefined && problem !== lastProblem) log.warn({ problem }, 'the gate’s list is not made anew');
    lastProblem = problem;
  };

  const look = () => {
    const plan = planConflist(readConfFiles(confDir), conflist);
    say(plan.kind === 'keep' ? plan.problem : undefined);
    if (plan.kind === 'write') {
      placeFile(own, Buffer.from(plan.text), 0o600);
      log.info({ path: own, primary: plan.primary }, 'the gate is before the primary network');
    } else if (plan.kind === 'remove') {
      removeFile(own);
      log.warn({ path: own }, 'the primary network is gone, and the gate’s list with it');
    }
    metrics.gateInstalled.set(contentOf(own) === undefined ? 0 : 1);
  };

  return {
    /** The duty. @throws Error of the system when a file cannot be put in place */
    async run(signal: AbortSignal): Promise<void> {
      const guard = createGuard();
      placeShim();
      const guarded = guard(look);
      watchDirectory({ path: confDir, signal, onChange: guarded });
      guarded();
      const timer = setInterval(guarded, SAFETY * 1000);
      try {
        await Promise.race([untilAborted(signal), guard.failed]);
      } finally {
        clearInterval(timer);
      }
      remove();
    },
  };

  function remove(): void {
    for (const plugin of interpose.plugins) removeFile(join(interpose.dir, plugin));
    if (removeFile(own)) log.info({ path: own }, 'took the gate’s list away');
    metrics.gateInstalled.set(0);
  }
}

function readConfFiles(directory: string): ConfFile[] {
  try {
    const files = readdirSync(directory, { withFileTypes: true }).filter((entry) => !entry.isDirectory());
    return files.map(({ name }) => ({ name, text: contentOf(join(directory, name))?.toString('utf8') }));
  } catch {
    // No directory, no network.
    return [];
  }
}

/** Takes away what an installer has put in place, the shim included. @returns the paths that were there */
export function uninstall({
  binDir,
  confDir,
  interpose,
}: Pick<InstallerDeps, 'binDir' | 'confDir' | 'interpose'>): string[] {
  const plugins = interpose.plugins.map((plugin) => join(interpose.dir, plugin));
  return [join(confDir, GATE_CONFLIST), ...plugins, join(binDir, GATE_PLUGIN)].filter((path) => removeFile(path));
}
