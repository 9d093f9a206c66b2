import type { Explanation } from '../../cli/explain/explain.ts';
import { remedyText } from '../diagnosis/fixture.ts';

/** An explanation with its parts in the form of the text output. */
export interface Spoken extends Omit<Explanation, 'causes' | 'asks'> {
  readonly stage: Explanation['state'];
  readonly why: string;
  readonly help: readonly string[];
  readonly causes: readonly string[];
  readonly asks: readonly string[];
}

/** From the output of `plumbline explain -o json`. */
export function spoken(json: string): Spoken {
  const found = JSON.parse(json) as Explanation;
  return {
    ...found,
    stage: found.state,
    why: found.text,
    help: found.remedies.map(remedyText),
    asks: found.asks?.text ?? [],
    causes: found.causes.map(({ text }) => text),
  };
}
