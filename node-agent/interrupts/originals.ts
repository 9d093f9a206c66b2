import * as z from 'zod';
import { CpuSet } from '../../model/cpu-set.ts';
import { parseSaved } from '../files/bounded-file.ts';
import { StateFile } from '../files/state-file.ts';
import type { AgentLogger } from '../telemetry/log-messages.ts';

/** Maximum bytes. A knob takes about two hundred. */
const MAX_BYTES = 8 * 1024 * 1024;

const cpus = z.string().transform((text) => CpuSet.parse(text));
const savedKnob = z.object({
  key: z.string(),
  /** What it had before the agent. */
  original: cpus,
  /** What the agent writes, and wrote before: it may have been killed between saving and writing. */
  written: z.array(cpus),
});
const schema = z.object({
  bootId: z.string(),
  knobs: z.array(savedKnob),
  /** The CPUs that irqbalance left out before the agent, and those that the agent sent. */
  irqbalance: z.object({ socket: z.string(), before: cpus, sent: cpus }).optional(),
});

export type SavedKnob = Readonly<z.infer<typeof savedKnob>>;
export type SavedBans = Readonly<NonNullable<z.infer<typeof schema>['irqbalance']>>;

interface Saved {
  readonly knobs: ReadonlyMap<string, SavedKnob>;
  readonly irqbalance: SavedBans | undefined;
}

export interface OriginalsDeps {
  readonly path: string;
  /** Masks do not survive a reboot. */
  readonly bootId: string;
  readonly log: AgentLogger;
}

/**
 * What the kernel and irqbalance had before this agent, or an earlier one, changed it.
 *
 * Owner: the agent that changed a knob first. Age: of one boot. End: when the knob has its original again, or is gone; of a
 * queue whose interface may return from a pod, after MAX_AWAY others.
 */
export class Originals {
  readonly #file: StateFile<Saved>;

  constructor({ path, bootId, log }: OriginalsDeps) {
    this.#file = new StateFile<Saved>({
      path,
      maxBytes: MAX_BYTES,
      format: ({ knobs, irqbalance }) => JSON.stringify({ bootId, knobs: [...knobs.values()], irqbalance }),
      parse(text) {
        const saved = parseSaved(text, schema);
        if (saved.bootId !== bootId) return undefined;
        return { knobs: new Map(saved.knobs.map((knob) => [knob.key, knob])), irqbalance: saved.irqbalance };
      },
      log,
    });
  }

  /** Call it with the agent's lock held. */
  load(signal: AbortSignal): void {
    this.#file.load(signal);
  }

  /** Why nothing may be changed: it could not be undone. */
  get problem(): string | undefined {
    return this.#file.problem;
  }

  get(key: string): SavedKnob | undefined {
    return this.#file.value?.knobs.get(key);
  }

  get all(): readonly SavedKnob[] {
    return [...(this.#file.value?.knobs.values() ?? [])];
  }

  get bans(): SavedBans | undefined {
    return this.#file.value?.irqbalance;
  }

  get isEmpty(): boolean {
    return this.#file.mode !== 'unread' && this.#file.value === undefined;
  }

  /** Saves them before the first write. */
  save(knobs: readonly SavedKnob[]): void {
    this.#set(new Map(knobs.map((knob) => [knob.key, knob])), this.bans);
  }

  saveBans(bans: SavedBans | undefined): void {
    this.#set(this.#file.value?.knobs ?? new Map(), bans);
  }

  #set(knobs: ReadonlyMap<string, SavedKnob>, irqbalance: SavedBans | undefined): void {
    this.#file.set(knobs.size === 0 && irqbalance === undefined ? undefined : { knobs, irqbalance });
  }
}
