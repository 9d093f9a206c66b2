/** A straight line through measurements, and the error of its slope. */
export interface Line {
  /** By least squares, in the measurement's unit per unit of x. */
  readonly slope: number;
  /** The standard error of the slope. */
  readonly error: number;
  readonly mean: number;
}

/**
 * Least squares over points of x and y.
 * @throws RangeError if there are fewer than three
 */
export function fitLine(points: readonly (readonly [number, number])[]): Line {
  const n = points.length;
  if (n < 3) throw new RangeError(`${n} points make no line with an error`);
  const meanX = points.reduce((sum, [x]) => sum + x, 0) / n;
  const mean = points.reduce((sum, [, y]) => sum + y, 0) / n;
  const spread = points.reduce((sum, [x]) => sum + (x - meanX) ** 2, 0);
  const slope = points.reduce((sum, [x, y]) => sum + (x - meanX) * (y - mean), 0) / spread;
  const rest = points.reduce((sum, [x, y]) => sum + (y - mean - slope * (x - meanX)) ** 2, 0);
  return { slope, error: Math.sqrt(rest / (n - 2) / spread), mean };
}

/** Whether it rises by more than the allowance, beyond what its error could explain. */
export function rises({ slope, error }: Line, length: number, allowance: number): boolean {
  return (slope - 2 * error) * length > allowance;
}
