import { rmSync } from 'node:fs';
import * as z from 'zod';
import { errorText } from '../../model/errors.ts';
import { ProblemLog } from '../../runtime/problem-log.ts';
import { parseSaved, putAside, readBounded, saveFile } from '../files/bounded-file.ts';
import type { AgentLogger } from '../telemetry/log-messages.ts';

/** Outlives this process: if a mask is removed meanwhile, the next agent undoes it, and no pins of others. */
export type PinRecord = ReturnType<typeof createPinsFile>;

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
const schema = z.object({ bootId: z.string(), guests: z.array(pinnedGuest) });

export type PinnedGuest = Readonly<z.infer<typeof pinnedGuest>>;
export type PinnedScope = PinnedGuest['scope'];

export interface PinsFileDeps {
  /** Pins do not survive a reboot. */
  readonly bootId: string;
  /** When a process started; undefined if it has ended. */
  readonly startOf: (pid: number) => number | undefined;
  readonly log: AgentLogger;
}

/** If the file cannot be read or written, a warning is logged, and masks work without it. */
export function createPinsFile(path: string, { bootId, startOf, log }: PinsFileDeps) {
  const guests = new Map(load(path, bootId, log).map((guest) => [guest.podUID, guest]));
  const problems = new ProblemLog(log, { file: path });
  const save = () => {
    for (const [uid, { pid, start }] of guests) if (startOf(pid) !== start) guests.delete(uid);
    try {
      if (guests.size === 0) rmSync(path, { force: true });
      else saveFile(path, JSON.stringify({ bootId, guests: [...guests.values()] }));
      problems.recovered();
    } catch (error) {
      problems.failed(error, 'saving which VMs are pinned failed');
    }
  };
  return {
    has: (podUID: string) => guests.has(podUID),
    /** Undefined for a process other than the recorded one. */
    scope(podUID: string, { pid, start }: Pick<PinnedGuest, 'pid' | 'start'>) {
      const guest = guests.get(podUID);
      return guest?.pid === pid && guest.start === start ? guest.scope : undefined;
    },
    /** Call it before moving the first thread. */
    remember(guest: PinnedGuest) {
      const saved = guests.get(guest.podUID);
      if (saved?.pid === guest.pid && saved.start === guest.start && saved.scope === guest.scope) return;
      guests.set(guest.podUID, guest);
      save();
    },
    forget(podUID: string) {
      if (guests.delete(podUID)) save();
    },
  };
}

function load(path: string, bootId: string, log: AgentLogger): readonly PinnedGuest[] {
  const unread = (error: unknown, keptAs?: string) => {
    log.warn(
      { reason: errorText(error), file: path, keptAs },
      'reading which VMs were pinned failed; removed masks may stay in force',
    );
    return [];
  };
  let text: string;
  try {
    text = readBounded(path, MAX_BYTES);
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'ENOENT' ? [] : unread(error);
  }
  try {
    const saved = parseSaved(text, schema);
    return saved.bootId === bootId ? saved.guests : [];
  } catch (error) {
    return unread(error, putAside(path));
  }
}
