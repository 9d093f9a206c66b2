import * as z from 'zod';
import { CpuSet } from '../../model/cpu-set.ts';
import { parseSavedInBoot } from '../files/bounded-file.ts';
import { StateFile } from '../files/state-file.ts';
import type { AgentLogger } from '../telemetry/log-messages.ts';

/** Maximum bytes. A knob takes about two hundred. */
const MAX_BYTES = 8 * 1024 * 1024;

const cpus = z.string().transform((text) => CpuSet.parse(text));
const savedKnob = z.object({
  key: z.string(),
  /** What it had before the agent. */
  original: cpus,
  /** What the agent wrote before, and is about to write: it may have been killed in between. */
  written: z.array(cpus),
});
const schema = z.object({
  bootId: z.string(),
  knobs: z.array(savedKnob).transform((knobs) => new Map(knobs.map((knob) => [knob.key, knob]))),
  /** The CPUs that irqbalance left out before the agent, and those that the agent sent. */
  irqbalance: z.object({ socket: z.string(), before: cpus, sent: cpus }).optional(),
});

export type SavedKnob = Readonly<z.infer<typeof savedKnob>>;
type Saved = Readonly<z.infer<typeof schema>>;

/** The CPUs that the agent took from the original. */
export function clearedCpus({ original, written }: SavedKnob): CpuSet {
  return original.minus(written.at(-1) ?? original);
}

/**
 * What the kernel and irqbalance had before this agent, or an earlier one, changed it.
 *
 * Owner: the agent that changed a knob first. Age: of one boot. End: when the knob has its original again, or is gone; of a
 * queue whose interface may return from a pod, after MAX_AWAY others.
 */
export class Originals extends StateFile<Saved> {
  readonly #none: Saved;

  /** @param bootId masks do not survive a reboot */
  constructor({ path, bootId, log }: { path: string; bootId: string; log: AgentLogger }) {
    super({
      path,
      maxBytes: MAX_BYTES,
      format: (saved) => JSON.stringify({ ...saved, knobs: [...saved.knobs.values()] }),
      parse: (text) => parseSavedInBoot(text, schema, bootId),
      log,
    });
    this.#none = { bootId, knobs: new Map() };
  }

  get isEmpty(): boolean {
    return this.mode !== 'unread' && this.value === undefined;
  }

  /** Saved when it returns, unless `problem` says why not. */
  change(changes: Partial<Saved>): void {
    const next = { ...this.#none, ...this.value, ...changes };
    this.set(next.knobs.size === 0 && next.irqbalance === undefined ? undefined : next);
  }
}
