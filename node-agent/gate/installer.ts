import { existsSync, readdirSync, rmSync } from 'node:fs';
import { dirname, join } from 'node:path';
import {
  type ConfFile,
  type ConflistPlan,
  choosePrimary,
  GATE_FILES,
  GATE_PLUGIN,
  MAX_CONF_BYTES,
  planConflist,
} from '../../model/cni/conflist.ts';
import { resultOrNone } from '../../model/json.ts';
import { ProblemLog } from '../../runtime/problem-log.ts';
import { everyTick } from '../../runtime/time.ts';
import { readBounded, readBoundedBytes, saveFile, unlessMissing } from '../files/bounded-file.ts';
import { watchDirectory } from '../files/watch-directory.ts';
import { Guard, type Services } from '../lifecycle/duty.ts';
import type { AgentMessages } from '../telemetry/log-messages.ts';

/** Seconds between checks in case an event was lost: the kernel drops events only when thousands are unread. */
const POLL_SECONDS = 30;
/** Minimum seconds between two writes, against another program that keeps removing the gate's file. */
const MIN_WRITE_INTERVAL_SECONDS = 1;
/** Bytes. The shim has 40 kB. */
const MAX_SHIM_BYTES = 16 * 1024 * 1024;

interface InstallerDeps extends Pick<Services, 'log' | 'metrics'> {
  readonly binDir: string;
  readonly confDir: string;
  readonly shim: string;
  /** Seconds between two writes; default 1. */
  readonly pace?: number;
}

/**
 * Installs the shim, and a configuration that sorts before that of the primary network. Both stay when the agent stops:
 * until the next one answers, the shim uses the state file. Only disabling the gate removes them, see `removeGate`.
 */
export class GateInstaller {
  readonly #deps: InstallerDeps;
  readonly #problems: ProblemLog<AgentMessages>;
  /** When this process last wrote the configuration, in monotonic seconds. */
  #writtenAt = Number.NEGATIVE_INFINITY;

  constructor(deps: InstallerDeps) {
    this.#deps = deps;
    this.#problems = new ProblemLog(deps.log);
  }

  /** The duty. @throws a system error if it cannot write a file */
  async run(signal: AbortSignal): Promise<void> {
    const guard = new Guard();
    let postponed: NodeJS.Timeout | undefined;
    const guarded = guard.wrap(() => {
      clearTimeout(postponed);
      const wait = this.#reconcile(performance.now() / 1000);
      if (wait !== undefined) postponed = setTimeout(guarded, wait * 1000);
    });
    this.#placeShim();
    watchDirectory({ path: this.#deps.confDir, signal, onChange: guarded, log: this.#deps.log });
    guarded();
    const endPolls = everyTick(POLL_SECONDS, guarded);
    try {
      await guard.until(signal);
    } finally {
      endPolls();
      clearTimeout(postponed);
    }
  }

  #placeShim(): void {
    const { shim, binDir, log } = this.#deps;
    let program: Buffer;
    try {
      program = readBoundedBytes(shim, MAX_SHIM_BYTES);
    } catch (cause) {
      throw new Error(`the agent's image has no CNI plugin: ${(cause as Error).message}`, { cause });
    }
    const path = join(binDir, GATE_PLUGIN);
    if (placeFile(path, program, 0o755)) log.info({ path }, 'gate plugin installed');
  }

  /** Checks the directory once. @returns seconds until the next check, if a write was postponed */
  #reconcile(nowSeconds: number): number | undefined {
    const { confDir, metrics, pace = MIN_WRITE_INTERVAL_SECONDS } = this.#deps;
    let problem: string | undefined;
    try {
      const plan = planConflist(readConfFiles(confDir));
      const wait = this.#writtenAt + pace - nowSeconds;
      if (plan.kind === 'write' && wait > 0) return wait;
      if (plan.kind === 'keep') problem = plan.problem;
      else this.#apply(plan, nowSeconds);
    } catch (error) {
      problem = (error as Error).message;
    }
    if (problem === undefined) this.#problems.recovered();
    else this.#problems.failed(problem, 'gate incomplete: new pods may start without it');
    const isInstalled = problem === undefined && gateConfFiles(confDir).some((path) => existsSync(path));
    metrics.gateInstalled.set(isInstalled ? 1 : 0);
    return undefined;
  }

  /** @throws a system error */
  #apply(plan: Exclude<ConflistPlan, { kind: 'keep' }>, nowSeconds: number): void {
    const { confDir, log } = this.#deps;
    if (plan.kind === 'write') {
      this.#writtenAt = nowSeconds;
      placeFile(join(confDir, plan.name), Buffer.from(plan.text), 0o600);
      log.info({ file: plan.name, primary: plan.primary }, 'gate installed before the primary network');
    } else {
      log.warn({ files: plan.remove }, 'gate configuration removed: the primary network is gone');
    }
    for (const name of plan.remove) removeFile(join(confDir, name));
  }
}

interface GateRemoval {
  readonly confDir: string;
  readonly state: string;
  /** Undefined: the shim stays, because runtimes call a sandbox's plugins again to remove the sandbox. */
  readonly binDir?: string;
}

/** Disables the gate: removes its configuration and state. @returns the paths that existed @throws a system error */
export function removeGate({ confDir, state, binDir }: GateRemoval): string[] {
  const shim = binDir === undefined ? [] : [join(binDir, GATE_PLUGIN)];
  return [...gateConfFiles(confDir), state, ...shim].filter((path) => removeFile(path));
}

function gateConfFiles(confDir: string): string[] {
  return Object.values(GATE_FILES).map((name) => join(confDir, name));
}

/** The primary and the gate's own files; none if the directory does not exist. @throws a system error */
function readConfFiles(directory: string): ConfFile[] {
  const entries = unlessMissing(() => readdirSync(directory, { withFileTypes: true })) ?? [];
  const names = entries.filter((entry) => !entry.isDirectory()).map(({ name }) => name);
  const primary = choosePrimary(names.map((name) => ({ name, text: undefined })))?.name;
  const relevant = new Set<string | undefined>([primary, ...Object.values(GATE_FILES)]);
  return names
    .filter((name) => relevant.has(name))
    .map((name) => {
      try {
        return { name, text: readBounded(join(directory, name), MAX_CONF_BYTES) };
      } catch (error) {
        return { name, text: undefined, fault: (error as Error).message };
      }
    });
}

/** The CNI plugin's file: next to the agent's bundle; for the agent's source, in the folder of bundles. */
export function gateProgram(agentProgram: string): string {
  const directory = dirname(agentProgram);
  return join(agentProgram.endsWith('.ts') ? join(directory, '../dist') : directory, GATE_PLUGIN);
}

/** In one step, unless identical: a runtime may be executing it. @returns whether it wrote @throws a system error */
export function placeFile(path: string, content: Buffer, mode: number): boolean {
  if (resultOrNone(() => readBoundedBytes(path, content.length))?.equals(content)) return false;
  saveFile(path, content, { mode });
  return true;
}

/** @returns whether it existed @throws a system error */
function removeFile(path: string): boolean {
  return unlessMissing(() => rmSync(path) ?? true) ?? false;
}
