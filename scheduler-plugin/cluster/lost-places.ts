import { alignsOrRefuses } from '../../model/placement/needs.ts';
import { lostPlaces } from '../../model/placement/place.ts';
import type { Reservation } from '../../model/reservations/reservation.ts';
import type { Reservations } from '../../model/reservations/reservations.ts';
import { type ClusterNode, type Fleet, trustedShape } from './fleet.ts';
import type { PodNeeds } from './pod-needs.ts';

const NONE: ReadonlySet<string> = new Set();

/** Bound pods that lost the place they were promised, by node; cached until its report or its reservations change. */
export class LostPlaces {
  readonly #fleet: Fleet;
  readonly #reservations: Reservations<PodNeeds>;
  readonly #podUids = new Map<string, ReadonlySet<string>>();

  constructor(fleet: Fleet, reservations: Reservations<PodNeeds>) {
    this.#fleet = fleet;
    this.#reservations = reservations;
  }

  changed(node: string): void {
    this.#podUids.delete(node);
  }

  on(name: string): ReadonlySet<string> {
    const node = this.#fleet.get(name);
    if (node === undefined || node.reservations === 0) return NONE;
    const shape = trustedShape(node);
    // Checked before the host is prepared with its pods, which is most of the work.
    if (shape === undefined || !alignsOrRefuses(shape.empty)) return NONE;
    const podUids = this.#podUids.get(name) ?? this.#compute(node);
    this.#podUids.set(name, podUids);
    return podUids;
  }

  /** According to the API server. */
  goneFrom({ name, assignments }: ClusterNode): ReadonlySet<string> {
    const gone = assignments.filter(({ podUID }) => !this.#reservations.isBoundTo(podUID, name));
    return gone.length === 0 ? NONE : new Set(gone.map(({ podUID }) => podUID));
  }

  #compute(node: ClusterNode): ReadonlySet<string> {
    const reservations = this.#reservations
      .assumedOn(node.name)
      .filter((reservation) => reservation.kind === 'bound' && wasPredicted(reservation, node.name));
    const host = reservations.length === 0 ? undefined : this.#fleet.host(node);
    if (host === undefined) return NONE;
    const needs = reservations.map(({ pod }) => pod);
    return lostPlaces(host, needs, this.goneFrom(node));
  }
}

/** A reservation that was found bound, such as a static pod's, was never checked against the others. */
function wasPredicted({ places }: Reservation<PodNeeds>, node: string): boolean {
  return places.get(node)?.cpus !== undefined;
}
