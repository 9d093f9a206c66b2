import { closeSync, mkdirSync, openSync } from 'node:fs';
import { join } from 'node:path';
import { lockHolder, tryLockFile } from '../../native/file-lock.ts';
import type { Logger } from '../../runtime/log.ts';
import { sleep } from '../../runtime/time.ts';

const LOCK_FILE = 'agent.lock';
/** Seconds between attempts while another agent has the lock. */
const RETRY_SECONDS = 0.25;

/**
 * Lets one agent at a time work on a node. Two would replace each other's sockets and undo each other's masks. The
 * kernel releases the lock when its process ends in any way, so nothing is left behind.
 */
export class AgentLock {
  readonly #path: string;
  readonly #log: Logger;
  #file: number | undefined;
  #problem: string | undefined;

  constructor(stateDir: string, log: Logger) {
    this.#path = join(stateDir, LOCK_FILE);
    this.#log = log;
  }

  /** Why this agent does not work yet; undefined if it may. */
  get problem(): string | undefined {
    return this.#problem;
  }

  /** Without a usable state directory, the agent works without a lock. @returns whether it may work now */
  tryAcquire(): boolean {
    try {
      if (this.#file === undefined) this.#open();
      const file = this.#file as number;
      this.#problem = tryLockFile(file) ? undefined : this.#describe(lockHolder(file));
    } catch (err) {
      this.#log.warn({ err, path: this.#path }, 'cannot lock; a second agent on this node would not be noticed');
      this.#problem = undefined;
    }
    return this.#problem === undefined;
  }

  /** Resolves when this agent may work, or the signal aborts. */
  async acquire(signal: AbortSignal): Promise<void> {
    let logged: string | undefined;
    while (!signal.aborted && !this.tryAcquire()) {
      if (this.#problem !== logged) this.#log.warn({ problem: this.#problem }, 'waiting for the other agent to end');
      logged = this.#problem;
      await sleep(RETRY_SECONDS, signal).catch(() => undefined);
    }
  }

  release(): void {
    if (this.#file !== undefined) closeSync(this.#file);
    this.#file = undefined;
  }

  #open(): void {
    mkdirSync(join(this.#path, '..'), { recursive: true });
    this.#file = openSync(this.#path, 'a', 0o600);
  }

  #describe(holder: number | undefined): string {
    const process = holder === undefined || holder === 0 ? 'a process' : `process ${holder}`;
    return `another agent runs on this node: ${process} has locked ${this.#path}`;
  }
}
