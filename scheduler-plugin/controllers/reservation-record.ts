import * as z from 'zod';
import type { LeaseRecord } from '../../kube/leader-election.ts';
import { RESERVATIONS_ANNOTATION } from '../../model/names.ts';
import type { Place } from '../../model/reservations/reservation.ts';
import type { Reservations } from '../../model/reservations/reservations.ts';
import type { Logger } from '../../runtime/log.ts';
import type { PodNeeds } from '../cluster/pod-needs.ts';
import type { PodView } from '../cluster/pod-view.ts';

export interface ReservationRecord extends LeaseRecord {
  /** Restores the last leader's reservation for this pod, given the pod's current state on the API server. */
  restore(pod: PodView): void;
}

/** Maximum characters to write: half of the limit that the API server sets for all annotations of an object. */
const LONGEST = 128 * 1024;
/** A pod's reservation: uid, version, remaining seconds, nodes. */
const written = z
  .tuple([
    z.string().max(64),
    z.string().max(32),
    z.number().min(0),
    z.array(z.string().min(1).max(253)).min(1).max(1000),
  ])
  .rest(z.unknown());

/** The prediction is unknown. */
const PLACE: Place = { cpus: undefined, score: 0 };

/**
 * Passes the tentative reservations from one leader to the next: if kube-scheduler waits for volumes, it can bind a pod
 * minutes after the extender promised it a node, and before 1.35 no object shows that in between.
 *
 * @param longest maximum seconds of a reservation, whatever a Lease contains
 */
export function createReservationRecord(
  reservations: Reservations<PodNeeds>,
  longest: number,
  now: () => number,
  log: Logger,
): ReservationRecord {
  let inherited = new Map<string, z.infer<typeof written>>();
  let inheritedAt = now();
  return {
    annotation: RESERVATIONS_ANNOTATION,
    write() {
      const open = [...reservations.tentative()].sort((a, b) => (b.expires ?? 0) - (a.expires ?? 0));
      const lines: string[] = [];
      let size = 0;
      for (const { uid, version, expires = 0, places } of open) {
        const line = JSON.stringify([uid, version, Math.max(0, Math.ceil(expires - now())), [...places.keys()]]);
        size += line.length + 1;
        if (size > LONGEST) break;
        lines.push(line);
      }
      return lines.length === 0 ? undefined : `[${lines.join()}]`;
    },
    read(text) {
      inherited = new Map(parse(text, log).map((record) => [record[0], record]));
      inheritedAt = now();
    },
    restore({ uid, node, needs }) {
      const record = inherited.get(uid);
      if (record === undefined || node !== undefined || reservations.of(uid) !== undefined) return;
      const [, version, seconds, nodes] = record;
      const places = new Map(nodes.map((name) => [name, PLACE]));
      reservations.reserve({ uid, pod: needs, places, version, expires: inheritedAt + Math.min(seconds, longest) });
    },
  };
}

/** Ignores content that cannot be parsed: an invalid Lease must not prevent a start. */
function parse(text: string | undefined, log: Logger): z.infer<typeof written>[] {
  if (text === undefined) return [];
  const records = text.length > LONGEST + 2 ? undefined : listOf(text);
  const read = (records ?? []).flatMap((record) => {
    const { data } = written.safeParse(record);
    return data === undefined ? [] : [data];
  });
  if (records === undefined || read.length < records.length) {
    const lost = records === undefined ? 'all' : records.length - read.length;
    const why = 'another version of the extender or another program has written them';
    log.warn(
      { read: read.length, lost, why },
      'reading the previous leader’s reservations failed; continuing without them',
    );
  }
  return read;
}

function listOf(text: string): unknown[] | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return Array.isArray(value) ? value : undefined;
  } catch {
    return undefined;
  }
}
