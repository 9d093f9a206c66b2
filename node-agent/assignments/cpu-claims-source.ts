import { ProblemLog } from '../../runtime/problem-log.ts';
import { everyTick } from '../../runtime/time.ts';
import { watchDirectory } from '../files/watch-directory.ts';
import type { Guard } from '../lifecycle/duty.ts';
import type { AgentLogger, AgentMessages } from '../telemetry/log-messages.ts';
import { CDI_FILE, type CpuClaim, readCpuClaims } from './cpu-claims.ts';
import type { Reading } from './view.ts';

/** Seconds between reads while a file cannot be read. */
const RETRY_SECONDS = 10;

export interface CpuClaimsDeps {
  /** The directory of CDI. A host without it has no claims. */
  readonly directory: string;
  readonly log: AgentLogger;
  readonly onReading: (reading: Reading<readonly CpuClaim[]>, at: number) => void;
}

const textOf = (claims: readonly CpuClaim[] | undefined) => claims?.map(({ uid, cpus }) => `${uid} ${cpus}`).join();

/**
 * The CPUs of prepared claims. Owner: dra-driver-cpu, which writes a claim's CPUs before its container is created. Age:
 * an event of the directory. End: the removal of the file; while a file is unusable, the last good claims stay.
 */
export class CpuClaimsSource {
  readonly #deps: CpuClaimsDeps;
  readonly #problems: ProblemLog<AgentMessages>;
  #last: Reading<readonly CpuClaim[]> = { value: undefined, problem: undefined };

  constructor(deps: CpuClaimsDeps) {
    this.#deps = deps;
    this.#problems = new ProblemLog(deps.log, { directory: deps.directory });
  }

  follow(guard: Guard, signal: AbortSignal): void {
    const read = guard.wrap(() => this.read());
    const onChange = (name: string | undefined) => {
      if (name === undefined || CDI_FILE.test(name)) read();
    };
    watchDirectory({ path: this.#deps.directory, signal, onChange, log: this.#deps.log });
    read();
    // What cannot be read now causes no event when it can be read again.
    const retry = () => {
      if (this.#last.problem !== undefined) read();
    };
    signal.addEventListener('abort', everyTick(RETRY_SECONDS, retry), { once: true });
  }

  read(): void {
    const at = performance.now();
    let reading: Reading<readonly CpuClaim[]>;
    try {
      reading = { value: readCpuClaims(this.#deps.directory), problem: undefined };
    } catch (error) {
      reading = { value: this.#last.value, problem: (error as Error).message };
    }
    if (reading.problem === this.#last.problem && textOf(reading.value) === textOf(this.#last.value)) return;
    this.#last = reading;
    if (reading.problem === undefined) this.#problems.recovered();
    else this.#problems.failed(reading.problem, 'CPUs of claims unusable; keeping the last known ones');
    this.#deps.onReading(reading, at);
  }
}
