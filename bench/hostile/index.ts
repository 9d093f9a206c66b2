import type { BenchGroup } from '../support/settings.ts';
import { hostileResults } from './measure.ts';
import { NODE } from './node.ts';
import { OBJECTS } from './objects.ts';
import { TEXTS } from './texts.ts';

/** Every parser of foreign data with its worst accepted inputs, in the order of the output. */
export const HOSTILE_BENCHES: readonly BenchGroup[] = [...TEXTS, ...OBJECTS, ...NODE].map((parser) => ({
  names: [`hostile.${parser.name}`, `hostile.ms-${parser.name}`],
  benches: [() => hostileResults(parser)],
  alongside: 'counts',
}));
