import { closeSync, mkdirSync, openSync } from 'node:fs';
import { join } from 'node:path';
import { lockHolder, tryLockFile } from '../../native/file-lock.ts';
import { ProblemLog } from '../../runtime/problem-log.ts';
import { sleep } from '../../runtime/time.ts';
import type { AgentLogger, AgentMessages } from '../telemetry/log-messages.ts';

/** Seconds between attempts while another agent has the lock. */
const RETRY_SECONDS = 0.25;

/**
 * Lets one agent at a time work on a node. Two would replace each other's sockets and undo each other's masks. The
 * kernel releases the lock when its process ends in any way. Without a usable directory, an agent works without a lock.
 */
export class AgentLock {
  readonly #path: string;
  readonly #file: number | undefined;
  readonly #problems: ProblemLog<AgentMessages>;
  #problem: string | undefined;

  constructor(stateDir: string, log: AgentLogger) {
    this.#path = join(stateDir, 'agent.lock');
    this.#problems = new ProblemLog(log);
    try {
      mkdirSync(stateDir, { recursive: true });
      this.#file = openSync(this.#path, 'a', 0o600);
      this.#try();
    } catch (err) {
      log.warn({ err }, 'locking the state directory failed');
    }
    if (this.#problem !== undefined) this.#problems.failed(this.#problem, 'waiting for the other agent to end');
  }

  /** Why this agent may not work; undefined if it may. */
  get problem(): string | undefined {
    return this.#problem;
  }

  async acquired(signal: AbortSignal): Promise<void> {
    while (this.#problem !== undefined && !signal.aborted) {
      await sleep(RETRY_SECONDS, signal).catch(() => undefined);
      this.#try();
    }
    if (!signal.aborted) this.#problems.recovered();
  }

  #try(): void {
    if (this.#file === undefined || tryLockFile(this.#file)) this.#problem = undefined;
    else this.#problem = `another agent runs on this node: process ${lockHolder(this.#file)} has locked ${this.#path}`;
  }

  release(): void {
    if (this.#file !== undefined) closeSync(this.#file);
  }
}
