import * as z from 'zod';
import { ParseError, quote } from '../errors.ts';
import { NUMA_AFFINITY_ANNOTATION } from '../names.ts';

/**
 * Whether a VM must run on the NUMA node of a network's NIC. `required`: only there, checked at scheduling and claimed
 * on the node. `preferred`: the score of a node is higher if its kubelet would place the VM there. `none`: anywhere.
 */
export const AFFINITIES = ['required', 'preferred', 'none'] as const;
export type Affinity = (typeof AFFINITIES)[number];

/** What a user of `preferred` must know. */
export const PREFERRED_EFFECT =
  '"preferred" decides the score of nodes only; the kubelet does not know it and may place the VM on another NUMA node; use "required" to keep the VM near its network';

/** Characters of the annotation, and number of names in it: tenants write it, and messages may contain each name. */
const LONGEST = 16 * 1024;
const MOST_WISHES = 256;

/** Affinity by interface or network name, in the order of the annotation. */
export type AffinityByInterface = ReadonlyMap<string, Affinity>;

const WHAT = `annotation ${NUMA_AFFINITY_ANNOTATION}`;
const EXAMPLE = 'expected an object of names and affinities, as in {"dpdk-east":"required","mgmt":"none"}';
const preferences = z.record(z.string(), z.unknown());

/**
 * Parses `{"<interface or network name>": "required" | "preferred" | "none"}`. Empty text has no entries.
 * @throws ParseError if it is not JSON of that form, naming the wrong entry
 */
export function parseAffinities(text: string): AffinityByInterface {
  if (text.length > LONGEST) throw new ParseError(WHAT, text, `it has more than ${LONGEST} characters`);
  if (text.trim() === '') return new Map();
  let data: unknown;
  try {
    data = JSON.parse(text);
  } catch (cause) {
    throw new ParseError(WHAT, text, `it is not JSON; ${EXAMPLE}`, { cause });
  }
  const parsed = preferences.safeParse(data);
  if (!parsed.success) throw new ParseError(WHAT, text, EXAMPLE);
  const entries = Object.entries(parsed.data);
  if (entries.length > MOST_WISHES) throw new ParseError(WHAT, text, `it has more than ${MOST_WISHES} names`);
  return new Map(
    entries.map(([name, value]) => {
      const affinity = AFFINITIES.find((known) => known === value);
      if (affinity !== undefined) return [name, affinity];
      const shown = typeof value === 'string' ? quote(value) : quote(JSON.stringify(value));
      throw new ParseError(
        WHAT,
        text,
        `${quote(name)} has the value ${shown}; expected one of ${AFFINITIES.join(', ')}`,
      );
    }),
  );
}
