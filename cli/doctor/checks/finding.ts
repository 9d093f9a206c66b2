/** What is looked at; each can be asked for by its name. */
export const AREAS = [
  'installed',
  'webhook',
  'certificates',
  'extender',
  'agents',
  'kubelet',
  'networks',
  'dpu',
  'pods',
] as const;
export type Area = (typeof AREAS)[number];

/** `error`: something does not work. `warning`: it works, and will not always. */
export type Severity = 'error' | 'warning';

/** Something that is not in order. */
export interface Finding {
  readonly area: Area;
  readonly severity: Severity;
  /** What is wrong, naming the object. */
  readonly what: string;
  /** What comes of it. */
  readonly why: string;
  /** What to do about it. */
  readonly do: string;
  /** The objects it is true of, if there are several: `node/worker-1`. */
  readonly objects?: readonly string[] | undefined;
}

/** What a look at one area came to. */
export interface AreaReport {
  readonly area: Area;
  readonly findings: readonly Finding[];
  /** What was seen and is in order, for people. */
  readonly seen: readonly string[];
  /** What could not be looked at, and why: nothing is claimed of that. */
  readonly unseen: readonly string[];
}

/** A few names, and how many more there are. */
export function some(names: readonly string[], most = 3): string {
  return names.slice(0, most).join(', ') + (names.length > most ? ` and ${names.length - most} more` : '');
}

/** `1 node`, `3 nodes`. */
export function count(number: number, one: string, many = `${one}s`): string {
  return `${number} ${number === 1 ? one : many}`;
}
