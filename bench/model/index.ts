import type { BenchResult } from '../support/timing.ts';
import { guestCellCurve, guestCellSteps, hostCellGrowth } from './guest-cells.ts';
import { predictionAgainstSets } from './prediction.ts';

/** All measurements of model/, in the order of the output. */
export const MODEL_BENCHES: readonly (() => BenchResult)[] = [predictionAgainstSets, ...guestCellSteps, hostCellGrowth];

if (process.argv[1] === import.meta.filename) {
  for (const { guests, milliseconds, arrangements } of guestCellCurve()) {
    console.log(`16 host cells x ${guests} guest cells: ${milliseconds.toFixed(2)} ms (${arrangements} arrangements)`);
  }
  for (const bench of MODEL_BENCHES) {
    const { name, ratio, spread, bound, holds } = bench();
    const [least, most] = spread.map((value) => value.toFixed(1));
    console.log(`${name}: ${ratio.toFixed(1)} (${least} to ${most}), bound ${bound}: ${holds ? 'holds' : 'FAILS'}`);
  }
}
