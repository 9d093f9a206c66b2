import { isDeepStrictEqual } from 'node:util';
import { alignsOrRefuses } from '../../model/placement/needs.ts';
import { lostPlaces } from '../../model/placement/place.ts';
import type { Reservation } from '../../model/reservations/reservation.ts';
import type { Reservations } from '../../model/reservations/reservations.ts';
import { type ClusterNode, type Fleet, trustedShape } from './fleet.ts';
import type { PodNeeds } from './pod-needs.ts';

const NONE: ReadonlySet<string> = new Set();

/**
 * Bound pods that lost the place they were promised, by node. Owner: the extender. End of what is cached: the node's
 * report or its reservations change, or the API server reports that a pod is gone that the report still contains.
 */
export class LostPlaces {
  readonly #fleet: Fleet;
  readonly #reservations: Reservations<PodNeeds>;
  readonly #results = new Map<string, { readonly gone: ReadonlySet<string>; readonly lost: ReadonlySet<string> }>();

  constructor(fleet: Fleet, reservations: Reservations<PodNeeds>) {
    this.#fleet = fleet;
    this.#reservations = reservations;
  }

  changed(node: string): void {
    this.#results.delete(node);
  }

  on(name: string): ReadonlySet<string> {
    const node = this.#fleet.get(name);
    if (node === undefined || node.reservations === 0) return NONE;
    const shape = trustedShape(node);
    // Checked before the host is prepared with its pods, which is most of the work.
    if (shape === undefined || !alignsOrRefuses(shape.empty)) return NONE;
    const gone = this.goneFrom(node);
    const cached = this.#results.get(name);
    if (cached !== undefined && isDeepStrictEqual(cached.gone, gone)) return cached.lost;
    const lost = this.#compute(node, gone);
    this.#results.set(name, { gone, lost });
    return lost;
  }

  /** According to the API server. */
  goneFrom({ name, assignments }: ClusterNode): ReadonlySet<string> {
    const gone = assignments.filter(({ podUID }) => !this.#reservations.isBoundTo(podUID, name));
    return gone.length === 0 ? NONE : new Set(gone.map(({ podUID }) => podUID));
  }

  #compute(node: ClusterNode, gone: ReadonlySet<string>): ReadonlySet<string> {
    const reservations = this.#reservations
      .assumedOn(node.name)
      .filter((reservation) => reservation.kind === 'bound' && wasPredicted(reservation, node.name));
    const host = reservations.length === 0 ? undefined : this.#fleet.host(node);
    if (host === undefined) return NONE;
    const needs = reservations.map(({ pod }) => pod);
    return lostPlaces(host, needs, gone);
  }
}

/** A reservation that was found bound, such as a static pod's, was never checked against the others. */
function wasPredicted({ places }: Reservation<PodNeeds>, node: string): boolean {
  return places.get(node)?.cpus !== undefined;
}
