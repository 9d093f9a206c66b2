import { existsSync, readdirSync, rmSync } from 'node:fs';
import { dirname, join } from 'node:path';
import {
  type ConfFile,
  choosePrimary,
  GATE_FILES,
  GATE_PLUGIN,
  MAX_CONF_BYTES,
  planConflist,
} from '../../model/cni/conflist.ts';
import { resultOrNone } from '../../model/json.ts';
import { ProblemLog } from '../../runtime/problem-log.ts';
import { readBoundedBytes, saveFile } from '../files/bounded-file.ts';
import { watchDirectory } from '../files/watch-directory.ts';
import { Guard, type Services } from '../lifecycle/duty.ts';

/** Seconds between checks in case an event was lost. */
const POLL_SECONDS = 5;
/** Minimum seconds between two writes, against another program that keeps removing the gate's file. */
const MIN_WRITE_INTERVAL_SECONDS = 1;
/** Bytes. The shim has 40 kB. */
const MAX_SHIM_BYTES = 16 * 1024 * 1024;

export interface GatePlaces {
  readonly binDir: string;
  readonly confDir: string;
}

export interface InstallerDeps extends GatePlaces, Pick<Services, 'log' | 'metrics'> {
  readonly shim: string;
  /** Seconds between two writes; default 1. */
  readonly pace?: number;
}

/**
 * Installs the shim, and a configuration that sorts before that of the primary network. When the duty ends normally, it
 * removes the configuration. The shim stays: runtimes call a sandbox's plugins again to remove the sandbox.
 */
export function createInstaller(deps: InstallerDeps) {
  const { shim, binDir, confDir, log, metrics, pace = MIN_WRITE_INTERVAL_SECONDS } = deps;
  const problems = new ProblemLog(log);
  let writtenAt = Number.NEGATIVE_INFINITY;

  const placeShim = () => {
    const program = contentOf(shim, MAX_SHIM_BYTES);
    if (program === undefined) throw new Error(`cannot read ${shim}: the agent's image has no CNI plugin`);
    const path = join(binDir, GATE_PLUGIN);
    if (placeFile(path, program, 0o755)) log.info({ path }, 'gate plugin installed');
  };

  /** Checks the directory once. @returns seconds until the next check, if a write was postponed */
  const reconcile = (now: number): number | undefined => {
    const plan = planConflist(readConfFiles(confDir));
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
    if (problem === undefined) problems.recovered();
    else problems.failed(problem, 'gate incomplete: new pods may start without it');
    const inPlace = problem === undefined && ownFiles(confDir).some((path) => existsSync(path));
    metrics.gateInstalled.set(inPlace ? 1 : 0);
    return undefined;
  };

  return {
    /** The duty. @throws a system error if it cannot write a file */
    async run(signal: AbortSignal): Promise<void> {
      const guard = new Guard();
      let postponed: NodeJS.Timeout | undefined;
      const guarded = guard.wrap(() => {
        clearTimeout(postponed);
        const wait = reconcile(performance.now() / 1000);
        if (wait !== undefined) postponed = setTimeout(guarded, wait * 1000);
      });
      placeShim();
      watchDirectory({ path: confDir, signal, onChange: guarded });
      guarded();
      const timer = setInterval(guarded, POLL_SECONDS * 1000);
      try {
        await guard.until(signal);
      } finally {
        clearInterval(timer);
        clearTimeout(postponed);
      }
      const removed = ownFiles(confDir).filter((path) => removeFile(path));
      if (removed.length > 0) log.info({ removed }, 'gate removed from the primary network');
      metrics.gateInstalled.set(0);
    },
  };
}

/** Removes all files that an installer wrote, including the shim. @returns the paths that existed */
export function uninstall({ binDir, confDir }: GatePlaces): string[] {
  return [...ownFiles(confDir), join(binDir, GATE_PLUGIN)].filter((path) => removeFile(path));
}

function ownFiles(confDir: string): string[] {
  return Object.values(GATE_FILES).map((name) => join(confDir, name));
}

function readConfFiles(directory: string): ConfFile[] {
  const entries = resultOrNone(() => readdirSync(directory, { withFileTypes: true })) ?? [];
  const names = entries.filter((entry) => !entry.isDirectory()).map(({ name }) => name);
  const primary = choosePrimary(names.map((name) => ({ name, text: undefined })))?.name;
  const own: readonly string[] = Object.values(GATE_FILES);
  return names
    .filter((name) => name === primary || own.includes(name))
    .map((name) => ({ name, text: contentOf(join(directory, name), MAX_CONF_BYTES)?.toString('utf8') }));
}

/** The CNI plugin's file: next to the agent's bundle; for the agent's source, in the folder of bundles. */
export function gateProgram(agentProgram: string): string {
  const directory = dirname(agentProgram);
  return join(agentProgram.endsWith('.ts') ? join(directory, '../dist') : directory, GATE_PLUGIN);
}

/** The content of a file; undefined if it cannot be read, is not a regular file or has more than `most` bytes. */
export function contentOf(path: string, most: number): Buffer | undefined {
  return resultOrNone(() => readBoundedBytes(path, most));
}

/** In one step, unless identical: a runtime may be executing it. @returns whether it wrote @throws a system error */
export function placeFile(path: string, content: Buffer, mode: number): boolean {
  if (contentOf(path, content.length)?.equals(content)) return false;
  saveFile(path, content, { mode });
  return true;
}

export function removeFile(path: string): boolean {
  if (!existsSync(path)) return false;
  rmSync(path, { force: true });
  return true;
}
