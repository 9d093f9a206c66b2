import { ProblemLog } from '../../runtime/problem-log.ts';
import type { Tables } from '../open-vswitch/ovsdb/replica.ts';
import type { AgentLogger, AgentMessages } from '../telemetry/log-messages.ts';
import { type SwitchConfig, switchConfig } from './switch-config.ts';

/**
 * What the switch says. Owner: its database. Age: current while there is no problem; otherwise it is what was last known,
 * of any age. End: the next answer.
 */
export class SwitchReading {
  readonly #log: AgentLogger;
  readonly #problems: ProblemLog<AgentMessages>;
  /** An answer that was not parsed yet: the connection changes its tables in place. */
  #tables: Tables | undefined;
  #config: SwitchConfig | undefined;
  #problem: string | undefined;
  /** Whether the log says that the map alone is in use. */
  #isAbsenceLogged = false;

  constructor(log: AgentLogger) {
    this.#log = log;
    this.#problems = new ProblemLog(log);
  }

  /** The last known configuration; undefined if there was no answer yet. */
  get config(): SwitchConfig | undefined {
    if (this.#tables !== undefined) this.#config = switchConfig(this.#tables);
    this.#tables = undefined;
    return this.#config;
  }

  /** Why the configuration cannot be read now. */
  get problem(): string | undefined {
    return this.#problem;
  }

  /** Whether the switch has answered, or cannot. */
  get isTried(): boolean {
    return this.#problem !== undefined || this.#config !== undefined || this.#tables !== undefined;
  }

  answered(tables: Tables): void {
    this.#tables = tables;
    this.#problem = undefined;
  }

  failed(error: Error): void {
    this.#problem = error.message;
  }

  /** @param isNeeded whether a network of this node comes from the switch; undefined while the node's map is unknown */
  logProblem(isNeeded: boolean | undefined): void {
    if (this.#problem === undefined) {
      this.#problems.recovered();
      this.#isAbsenceLogged = false;
    } else if (isNeeded === true) {
      this.#problems.failed(this.#problem, 'querying Open vSwitch failed; retrying');
    } else if (isNeeded === false && !this.#isAbsenceLogged) {
      this.#isAbsenceLogged = true;
      this.#log.info({ reason: this.#problem }, 'no Open vSwitch; using the network map alone');
    }
  }
}
