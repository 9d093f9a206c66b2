import * as z from 'zod';
import { parseSavedInBoot } from '../files/bounded-file.ts';
import { type OnFileProblem, StateFile } from '../files/state-file.ts';
import { hasEnded } from '../processes/proc.ts';
import type { AgentLogger } from '../telemetry/log-messages.ts';

/** Maximum bytes. A guest takes about a hundred. */
const MAX_BYTES = 1024 * 1024;

/** A guest whose threads a mask has moved: its vCPUs, or all of them. */
const pinnedGuest = z.object({
  podUID: z.string(),
  pid: z.number().int().positive(),
  /** Distinguishes it from a later process with the same id. */
  start: z.number(),
  scope: z.enum(['vcpus', 'vm']),
});
const schema = z.object({
  bootId: z.string(),
  guests: z.array(pinnedGuest).transform((guests) => new Map(guests.map((guest) => [guest.podUID, guest]))),
});

type PinnedGuest = Readonly<z.infer<typeof pinnedGuest>>;
export type PinnedScope = PinnedGuest['scope'];
type Guests = ReadonlyMap<string, PinnedGuest>;

export interface PinRecordDeps {
  readonly path: string;
  /** Pins do not survive a reboot. */
  readonly bootId: string;
  /** When a process started; undefined if it has ended. */
  readonly startOf: (pid: number) => number | undefined;
  readonly log: AgentLogger;
  readonly onProblem?: OnFileProblem;
}

/**
 * The guests that masks have moved: if a mask is removed while no agent runs, the next one undoes it, and no pins of
 * others. If the file cannot be read or written, masks work without it.
 *
 * Owner: the agent that pins a guest; a guest that was recorded before the file could be read is newer than the saved
 * one. Age: of one boot. End: when the mask is removed; an ended process's with the next change.
 */
export class PinRecord {
  readonly #startOf: PinRecordDeps['startOf'];
  readonly #file: StateFile<Guests>;

  constructor({ path, bootId, startOf, log, onProblem }: PinRecordDeps) {
    this.#startOf = startOf;
    this.#file = new StateFile<Guests>({
      path,
      maxBytes: MAX_BYTES,
      format: (guests) => JSON.stringify({ bootId, guests: [...guests.values()] }),
      parse: (text) => parseSavedInBoot(text, schema, bootId)?.guests,
      merge: (saved = new Map(), recorded = new Map()) => new Map([...saved, ...recorded]),
      log,
      onProblem,
    });
  }

  /** Call it with the agent's lock held. @param onLate called when a file that cannot be read now has been read */
  load(signal: AbortSignal, onLate: () => void): void {
    this.#file.load(signal, onLate);
  }

  has(podUID: string): boolean {
    return this.#file.value?.has(podUID) === true;
  }

  /** Undefined for a process other than the recorded one. */
  scope(podUID: string, { pid, start }: Pick<PinnedGuest, 'pid' | 'start'>): PinnedScope | undefined {
    const guest = this.#file.value?.get(podUID);
    return guest?.pid === pid && guest.start === start ? guest.scope : undefined;
  }

  /** Call it before moving the first thread. */
  save(guest: PinnedGuest): void {
    if (this.scope(guest.podUID, guest) === guest.scope) return;
    const guests = this.#running();
    guests.set(guest.podUID, guest);
    this.#file.set(guests);
  }

  forget(podUID: string): void {
    if (!this.has(podUID)) return;
    const guests = this.#running();
    guests.delete(podUID);
    this.#file.set(guests.size === 0 ? undefined : guests);
  }

  #running(): Map<string, PinnedGuest> {
    const guests = [...(this.#file.value ?? [])];
    return new Map(guests.filter(([, guest]) => !hasEnded(guest, this.#startOf)));
  }
}
