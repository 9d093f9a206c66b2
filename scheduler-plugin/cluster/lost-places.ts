import { lostPlaces } from '../../model/placement/lost-places.ts';
import { alignsOrRefuses } from '../../model/placement/needs.ts';
import type { Reservation } from '../../model/reservations/reservation.ts';
import type { Reservations } from '../../model/reservations/reservations.ts';
import type { Fleet } from './fleet.ts';
import type { PodNeeds } from './pod-needs.ts';

const NONE: ReadonlySet<string> = new Set();

/**
 * Bound pods that no longer get the place they were promised, by node. The result is cached until the node's report or
 * its reservations change: one check covers all pods that start on a node.
 */
export class LostPlaces {
  readonly #fleet: Fleet;
  readonly #reservations: Reservations<PodNeeds>;
  readonly #found = new Map<string, ReadonlySet<string>>();

  constructor(fleet: Fleet, reservations: Reservations<PodNeeds>) {
    this.#fleet = fleet;
    this.#reservations = reservations;
  }

  /** Call it when the node's report or its reservations have changed. */
  changed(node: string): void {
    this.#found.delete(node);
  }

  /** Uids of the pods that were promised a place on the node and lost it. */
  on(node: string): ReadonlySet<string> {
    const id = this.#fleet.names.find(node);
    if (id < 0 || this.#fleet.assumed(id) === 0) return NONE;
    const shape = this.#fleet.trusted(id);
    // Checked before the host is prepared with its pods, which is most of the work.
    if (shape === undefined || !alignsOrRefuses(shape.empty)) return NONE;
    let found = this.#found.get(node);
    if (found === undefined) {
      found = this.#find(node, id);
      this.#found.set(node, found);
    }
    return found;
  }

  /** The pods in the node's report that are no longer bound there according to the API server. */
  goneFrom(id: number): ReadonlySet<string> {
    const node = this.#fleet.nameOf(id);
    let gone: Set<string> | undefined;
    for (const { podUID } of this.#fleet.assignments(id)) {
      if (!this.#reservations.isBoundTo(podUID, node)) gone = (gone ?? new Set()).add(podUID);
    }
    return gone ?? NONE;
  }

  #find(node: string, id: number): ReadonlySet<string> {
    const reservations = this.#reservations
      .assumedOn(node)
      .filter((reservation) => reservation.kind === 'bound' && wasPredicted(reservation, node));
    const host = reservations.length === 0 ? undefined : this.#fleet.host(id);
    if (host === undefined) return NONE;
    const needs = reservations.map(({ pod }) => pod);
    return lostPlaces(host, needs, this.goneFrom(id));
  }
}

/** A reservation that was found bound, such as a static pod's, was never checked against the others. */
function wasPredicted({ places }: Reservation<PodNeeds>, node: string): boolean {
  return places.get(node)?.cpus !== undefined;
}
