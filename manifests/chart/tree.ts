/** A manifest as data. */
export type Json = string | number | boolean | null | readonly Json[] | { readonly [key: string]: Json };

/**
 * A manifest with variants: parts of it exist only under a condition of Helm's templates. A condition is the text after
 * `if`.
 */
export type Tree = Scalar | Choice | Raw | MapNode | SeqNode;
export type Scalar = string | number | boolean | null;
export type Condition = string;

/** A default value, and other values under conditions. */
export interface Choice {
  readonly kind: 'choice';
  readonly value: Scalar;
  readonly others: readonly { readonly when: Condition; readonly value: Scalar }[];
}
/** Template text. With `block` it contains its own lines, and indents each with INDENT or PAD. */
export interface Raw {
  readonly kind: 'raw';
  readonly text: string;
  readonly block?: boolean;
}
export interface MapNode {
  readonly kind: 'map';
  entries: Entry[];
}
export interface Entry {
  readonly key: string;
  value: Tree;
  when?: Condition | undefined;
}
export interface SeqNode {
  readonly kind: 'seq';
  items: { value: Tree; when?: Condition | undefined }[];
}

/** Placeholders in a block's text: the number of spaces of its indentation, and those spaces themselves. */
export const [INDENT, PAD] = ['@indent@', '@pad@'];

export interface Variant {
  readonly when: Condition;
  /** Undefined if the variant does not have it. */
  readonly value: Json | undefined;
}

export const or = (conditions: readonly Condition[]): Condition => {
  // `a and b` adds nothing to `a`.
  const adds = (one: Condition) => !conditions.some((other) => one.startsWith(`and (${other}) `));
  const unique = [...new Set(conditions)].filter(adds);
  return unique.length === 1 ? (unique[0] ?? '') : `or ${unique.map((one) => `(${one})`).join(' ')}`;
};
export const not = (condition: Condition): Condition => `not (${condition})`;

const isMap = (value: Json | undefined): value is { readonly [key: string]: Json } =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/**
 * Merges a value and its variants under conditions into one tree. Several conditions may hold at once if they add different
 * parts.
 * @throws Error if a value changes its type
 */
export function merge(value: Json, variants: readonly Variant[]): Tree {
  const present = variants.filter((one): one is Variant & { value: Json } => one.value !== undefined);
  const changed = present.filter((one) => JSON.stringify(one.value) !== JSON.stringify(value));
  if (Array.isArray(value)) return mergeSeq(value, present as (Variant & { value: Json[] })[]);
  if (isMap(value)) return mergeMap(value, present as (Variant & { value: { [key: string]: Json } })[]);
  const scalar = value as Scalar;
  if (changed.length === 0) return scalar;
  return {
    kind: 'choice',
    value: scalar,
    others: changed.map(({ when, value: to }) => ({ when, value: to as Scalar })),
  };
}

type Members = readonly { readonly id: string; readonly value: Json }[];

function mergeMap(
  value: { readonly [key: string]: Json },
  variants: readonly (Variant & { value: object })[],
): MapNode {
  const members = (of: object): Members => Object.entries(of).map(([id, one]) => ({ id, value: one as Json }));
  const entries = mergeMembers(
    members(value),
    variants.map(({ when, value: of }) => ({ when, members: members(of) })),
  );
  return { kind: 'map', entries: entries.map(({ id, ...rest }) => ({ key: id, ...rest })) };
}

function mergeSeq(value: readonly Json[], variants: readonly (Variant & { value: readonly Json[] })[]): SeqNode {
  // The keys by which Kubernetes merges a list: mounts by their paths, since a volume may have several, and others by their
  // names.
  const idOf = (one: Json) => {
    const id = isMap(one) ? (one['mountPath'] ?? one['name']) : undefined;
    return typeof id === 'string' ? id : JSON.stringify(one);
  };
  const members = (of: readonly Json[]): Members => of.map((one) => ({ id: idOf(one), value: one }));
  const items = mergeMembers(
    members(value),
    variants.map(({ when, value: of }) => ({ when, members: members(of) })),
  );
  return { kind: 'seq', items: items.map(({ value: one, when }) => ({ value: one, when })) };
}

function mergeMembers(base: Members, variants: readonly { readonly when: Condition; readonly members: Members }[]) {
  const find = (members: Members, id: string) => members.find((one) => one.id === id)?.value;
  const kept = base.map(({ id, value }) => {
    const inVariants = variants.map(({ when, members }) => ({ when, value: find(members, id) }));
    const without = inVariants.filter((one) => one.value === undefined).map(({ when }) => when);
    return { id, value: merge(value, inVariants), when: without.length === 0 ? undefined : not(or(without)) };
  });
  const ids = new Set(variants.flatMap(({ members }) => members.map(({ id }) => id)));
  for (const { id } of base) ids.delete(id);
  const added = [...ids].map((id) => {
    const having = variants.map(({ when, members }) => ({ when, value: find(members, id) }));
    const present = having.filter(({ value }) => value !== undefined);
    return { id, value: merge(present[0]?.value ?? null, present), when: or(present.map(({ when }) => when)) };
  });
  return [...kept, ...added];
}
