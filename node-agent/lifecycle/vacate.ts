import type { CpuSet } from '../../model/cpu-set.ts';
import { PlumblineError } from '../../model/errors.ts';
import { sleep } from '../../runtime/time.ts';

/** Maximum seconds that a container's start waits for its CPUs. */
const DEADLINE_SECONDS = 2;
const POLL_SECONDS = 0.02;

/** Something stayed on CPUs for longer than a container's start may be delayed. */
class VacateError extends PlumblineError {
  constructor(subject: string, cpus: CpuSet, staying: readonly string[]) {
    super('vacate', `${subject} not leave CPUs ${cpus.brief}: ${staying.join(', ')}`);
  }
}

interface Leaving {
  /** Who leaves, with a verb: `interrupts do`. */
  readonly subject: string;
  /** Moves what is on the CPUs. @returns what stays there, as texts */
  readonly move: () => readonly string[];
  /** Monotonic. */
  readonly nowSeconds: () => number;
}

/** Moves things off CPUs until nothing stays. @returns the seconds that it took @throws VacateError after 2 s */
export async function untilLeft(cpus: CpuSet, leaving: Leaving, signal?: AbortSignal): Promise<number> {
  const { subject, move, nowSeconds } = leaving;
  const begun = nowSeconds();
  for (;;) {
    const staying = move();
    const seconds = nowSeconds() - begun;
    if (staying.length === 0) return seconds;
    if (seconds >= DEADLINE_SECONDS) throw new VacateError(subject, cpus, staying);
    await sleep(POLL_SECONDS, signal);
  }
}
