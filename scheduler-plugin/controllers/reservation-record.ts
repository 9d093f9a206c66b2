import * as z from 'zod';
import type { LeaseRecord } from '../../kube/leader-election.ts';
import { RESERVATIONS_ANNOTATION } from '../../model/names.ts';
import type { Place } from '../../model/reservations/reservation.ts';
import type { Reservations } from '../../model/reservations/reservations.ts';
import type { Logger } from '../../runtime/log.ts';
import type { PodNeeds } from '../cluster/pod-needs.ts';
import type { PodView } from '../cluster/pod-view.ts';

export interface ReservationRecord extends LeaseRecord {
  /** Makes the last leader's reservation for this pod again. The pod is as the API server has it now. */
  restore(pod: PodView): void;
}

/** Characters that are written: half of what the API server allows all annotations of an object. */
const LONGEST = 128 * 1024;
/** Of a pod's reservation: uid, version, seconds that are left, nodes. */
const written = z
  .tuple([
    z.string().max(64),
    z.string().max(32),
    z.number().min(0),
    z.array(z.string().min(1).max(253)).min(1).max(1000),
  ])
  .rest(z.unknown());

/** The prediction there is unknown. */
const PLACE: Place = { cpus: undefined, score: 0 };

/**
 * The tentative reservations, as they are handed from one leader to the next: where kube-scheduler waits for volumes, a
 * pod can be bound minutes after it was promised a node, and before 1.35 no object says so in between.
 *
 * @param longest seconds that a reservation lasts at most, whatever a Lease contains
 */
export function createReservationRecord(
  reservations: Reservations<PodNeeds>,
  longest: number,
  now: () => number,
  log: Logger,
): ReservationRecord {
  let inherited = new Map<string, z.infer<typeof written>>();
  let inheritedAt = 0;
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

/** What cannot be read says nothing: a Lease is no reason not to start. */
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
