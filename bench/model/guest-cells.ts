import { arrangeGuestCells } from '../../model/placement/guest-cells.ts';
import { type BenchResult, ratioOf, secondsPerCall, sink } from '../support/timing.ts';

const ROOMS = 16;

/** Seconds to arrange guest cells on 16 host cells if only the last arrangement is possible. */
function arranging(guests: number, rooms = ROOMS): () => number {
  const networks = [new Set([rooms - 1]), new Set([rooms - 2])];
  return () =>
    secondsPerCall(() => {
      const found = arrangeGuestCells({ guests, rooms, networks, fits: (guest, room) => room >= guest });
      sink.value ^= found?.[0] ?? 0;
    }, 0.02);
}

/** The curve over 2 to 8 guest cells: milliseconds, and the number of arrangements of an exhaustive search. */
export function guestCellCurve(): {
  readonly guests: number;
  readonly milliseconds: number;
  readonly arrangements: number;
}[] {
  return [2, 3, 4, 5, 6, 7, 8].map((guests) => ({
    guests,
    milliseconds: arranging(guests)() * 1000,
    arrangements: Array.from({ length: guests }, (_, i) => ROOMS - i).reduce((product, rooms) => product * rooms, 1),
  }));
}

/**
 * The curve as ratios: one more guest cell on 16 host cells, for 3 to 8 guest cells. Each takes at most four times as
 * long as the previous one (2^n states, and slightly more work for each); an exhaustive search would take 14 to 9 times
 * as long.
 */
export const guestCellSteps: readonly (() => BenchResult)[] = [3, 4, 5, 6, 7, 8].map((guests) => () => {
  const name = `model.guest-cells-16x${guests}-over-16x${guests - 1}`;
  return ratioOf(name, { most: 4 }, arranging(guests), arranging(guests - 1), 5);
});

/** Twice the host cells take about twice as long: linear, with a margin for larger maps. */
export function hostCellGrowth(): BenchResult {
  return ratioOf('model.guest-cells-32-rooms-over-16', { most: 4 }, arranging(6, 32), arranging(6, 16), 5);
}
