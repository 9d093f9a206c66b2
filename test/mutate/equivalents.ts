import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';
import { nameOf, type Placed } from './mutants.ts';

const LIST = z.array(
  z.strictObject({
    file: z.string(),
    /** The source line without surrounding white space. */
    code: z.string(),
    /** The replaced text, and the kind of change. */
    was: z.string(),
    operator: z.string(),
    /** 0 is the first of its kind on the line. */
    nth: z.int().min(0).default(0),
    /** The reason why the change has no visible effect. */
    reason: z.string().min(20),
  }),
);

export type Equivalent = z.infer<typeof LIST>[number];

/** The changes that were checked and found to have no effect. */
export const equivalents: readonly Equivalent[] = LIST.parse(
  JSON.parse(readFileSync(join(import.meta.dirname, 'equivalents.json'), 'utf8')),
);

const NAMES = new Map(equivalents.map((one) => [nameOf(one as unknown as Placed), one.reason]));

/** The reason why a mutant has no effect, if it is on the list. */
export const reasonOf = (one: Placed): string | undefined => NAMES.get(nameOf(one));
