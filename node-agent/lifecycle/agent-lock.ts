import { closeSync, constants, mkdirSync, openSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { resultOrNone } from '../../model/json.ts';
import { lockHolder, tryLockFile } from '../../native/file-lock.ts';
import { ProblemLog } from '../../runtime/problem-log.ts';
import { sleep } from '../../runtime/time.ts';
import type { AgentLogger, AgentMessages } from '../telemetry/log-messages.ts';

/** Seconds between attempts while another agent has the lock, and while the lock cannot be used. */
const RETRY_SECONDS = 0.25;
const UNUSABLE_RETRY_SECONDS = 10;

/** A pipe in its place must not block the agent. */
const FLAGS = constants.O_WRONLY | constants.O_APPEND | constants.O_CREAT | constants.O_NONBLOCK;

/**
 * Lets one agent at a time work on a node. Two would replace each other's sockets and undo each other's masks. The
 * kernel releases the lock when its process ends in any way. Without a usable directory, an agent works without a lock,
 * since an agent that waits for a disk would leave the node to itself; it takes the lock as soon as it can, so that the
 * next agent waits for it. An agent that has seen another one waits for an answer of the lock.
 */
export class AgentLock {
  readonly #path: string;
  readonly #problems: ProblemLog<AgentMessages>;
  readonly #released = new AbortController();
  #file: number | undefined;
  /** False with a problem: another agent has it; without one: the file or its directory fails, so that is unknown. */
  #isHeld = false;
  #problem: string | undefined;

  constructor(stateDir: string, log: AgentLogger) {
    this.#path = join(stateDir, 'agent.lock');
    this.#problems = new ProblemLog(log);
    this.#try();
  }

  /** Why this agent may not work; undefined if it may. */
  get problem(): string | undefined {
    return this.#problem;
  }

  /** Resolves when this agent may work, or the signal aborts. */
  async acquired(signal: AbortSignal): Promise<void> {
    while (this.#problem !== undefined && !signal.aborted) {
      await sleep(RETRY_SECONDS, signal).catch(() => undefined);
      this.#try();
    }
    if (this.#problem === undefined && !this.#isHeld) void this.#takeLater();
  }

  release(): void {
    this.#released.abort();
    this.#close();
  }

  #close(): void {
    const file = this.#file;
    this.#file = undefined;
    if (file !== undefined) resultOrNone(() => closeSync(file));
  }

  /** Never rejects. An agent that began to work without the lock continues, even if another one has it meanwhile. */
  async #takeLater(): Promise<void> {
    const { signal } = this.#released;
    while (!this.#isHeld && !signal.aborted) {
      await sleep(UNUSABLE_RETRY_SECONDS, signal).catch(() => undefined);
      if (!signal.aborted) this.#try();
    }
  }

  /** Never throws. */
  #try(): void {
    try {
      mkdirSync(dirname(this.#path), { recursive: true });
      this.#file ??= openSync(this.#path, FLAGS, 0o600);
      this.#isHeld = tryLockFile(this.#file);
      this.#problem = this.#isHeld
        ? undefined
        : `another agent runs on this node: process ${lockHolder(this.#file)} has locked ${this.#path}`;
    } catch (error) {
      this.#isHeld = false;
      this.#close();
      this.#problems.failed(`${this.#path}: ${(error as Error).message}`, 'locking the state directory failed');
      return;
    }
    if (this.#problem === undefined) this.#problems.recovered();
    else this.#problems.failed(this.#problem, 'waiting for the other agent to end');
  }
}
