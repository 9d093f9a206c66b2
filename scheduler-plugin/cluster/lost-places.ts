import { lostPlaces } from '../../model/placement/lost-places.ts';
import type { Reservation } from '../../model/reservations/reservation.ts';
import type { Reservations } from '../../model/reservations/reservations.ts';
import type { Fleet } from './fleet.ts';
import type { PodNeeds } from './pod-needs.ts';

const NONE: ReadonlySet<string> = new Set();

/**
 * Bound pods that no longer get the place they were promised, by node. What was found is kept until the node's report or
 * its reservations change: all pods that start on a node are asked about in one go.
 */
export class LostPlaces {
  readonly #fleet: Fleet;
  readonly #reservations: Reservations<PodNeeds>;
  readonly #found = new Map<string, ReadonlySet<string>>();

  constructor(fleet: Fleet, reservations: Reservations<PodNeeds>) {
    this.#fleet = fleet;
    this.#reservations = reservations;
  }

  /** The node's report or its reservations have changed. */
  changed(node: string): void {
    this.#found.delete(node);
  }

  /** Uids of the pods, of those that were promised a place there. */
  on(node: string): ReadonlySet<string> {
    const id = this.#fleet.names.find(node);
    if (id < 0 || this.#fleet.assumed(id) === 0 || this.#fleet.trusted(id) === undefined) return NONE;
    let found = this.#found.get(node);
    if (found === undefined) {
      found = this.#find(node, id);
      this.#found.set(node, found);
    }
    return found;
  }

  /** Of the pods that the node's report shows: those that are not bound there any more, by what the API server says. */
  goneFrom(id: number): ReadonlySet<string> {
    const node = this.#fleet.names.nameOf(id) ?? '';
    let gone: Set<string> | undefined;
    for (const { podUID } of this.#fleet.assignments(id)) {
      if (!this.#reservations.isBoundTo(podUID, node)) gone = (gone ?? new Set()).add(podUID);
    }
    return gone ?? NONE;
  }

  #find(node: string, id: number): ReadonlySet<string> {
    const host = this.#fleet.host(id);
    if (host === undefined) return NONE;
    const reservations = this.#reservations
      .assumedOn(node)
      .filter((reservation) => reservation.kind === 'bound' && wasPredicted(reservation, node));
    const needs = reservations.map(({ pod }) => pod);
    return lostPlaces(host, needs, this.goneFrom(id));
  }
}

/** A reservation that was found, as of a static pod, was never checked against the others. */
function wasPredicted({ places }: Reservation<PodNeeds>, node: string): boolean {
  return places.get(node)?.cpus !== undefined;
}
