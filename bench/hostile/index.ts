import type { Bench } from '../support/settings.ts';
import { hostileResults } from './measure.ts';
import { NODE } from './node.ts';
import { OBJECTS } from './objects.ts';
import { TEXTS } from './texts.ts';

/** Every parser of foreign data with its worst accepted inputs. */
export const PARSERS = [...TEXTS, ...OBJECTS, ...NODE];

/** @throws Error if no parser has this name */
export function hostileBench(name: string): Bench {
  const parser = PARSERS.find((one) => one.name === name);
  if (parser === undefined) throw new Error(`bench/hostile has no parser ${name}`);
  return () => hostileResults(parser);
}
