import { stringify } from 'yaml';

export type Json = string | number | boolean | null | readonly Json[] | { readonly [key: string]: Json };

/**
 * A manifest with variants: parts of it exist only under a condition of Helm's templates. A condition is the text after
 * `if`.
 */
export type Tree = Scalar | Choice | Raw | MapNode | SeqNode;
type Scalar = string | number | boolean | null;
export type Condition = string;

interface Choice {
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

interface Variant {
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

const isJsonMap = (value: Json | undefined): value is { readonly [key: string]: Json } =>
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
  if (isJsonMap(value)) return mergeMap(value, present as (Variant & { value: { [key: string]: Json } })[]);
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
  const members = (of: object): Members => Object.entries(of).map(([id, member]) => ({ id, value: member as Json }));
  const entries = mergeMembers(
    members(value),
    variants.map(({ when, value: of }) => ({ when, members: members(of) })),
  );
  return { kind: 'map', entries: entries.map(({ id, ...rest }) => ({ key: id, ...rest })) };
}

function mergeSeq(value: readonly Json[], variants: readonly (Variant & { value: readonly Json[] })[]): SeqNode {
  // The keys by which Kubernetes merges a list: mounts by their paths, since a volume may have several, and others by their
  // names.
  const idOf = (item: Json) => {
    const id = isJsonMap(item) ? (item['mountPath'] ?? item['name']) : undefined;
    return typeof id === 'string' ? id : JSON.stringify(item);
  };
  const members = (of: readonly Json[]): Members => of.map((one) => ({ id: idOf(one), value: one }));
  const items = mergeMembers(
    members(value),
    variants.map(({ when, value: of }) => ({ when, members: members(of) })),
  );
  return { kind: 'seq', items: items.map(({ value: itemValue, when }) => ({ value: itemValue, when })) };
}

function mergeMembers(base: Members, variants: readonly { readonly when: Condition; readonly members: Members }[]) {
  const find = (members: Members, id: string) => members.find((one) => one.id === id)?.value;
  const merged = base.map(({ id, value }) => {
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
  return [...merged, ...added];
}

export function emit(tree: Tree): string {
  return `${lines(tree, 0).join('\n')}\n`;
}

const isMap = (tree: Tree): tree is MapNode => typeof tree === 'object' && tree !== null && tree.kind === 'map';

const isSeq = (tree: Tree): tree is SeqNode => typeof tree === 'object' && tree !== null && tree.kind === 'seq';

function lines(tree: Tree, indent: number): string[] {
  if (isMap(tree))
    return tree.entries.flatMap(({ key, value, when }) => guarded(when, entry(`${scalar(key)}:`, value, indent)));
  if (isSeq(tree)) return tree.items.flatMap(({ value, when }) => guarded(when, item(value, indent)));
  throw new Error('a manifest is a map');
}

/** Guards begin at the start of a line and remove the line break before them, so that they leave no trace. */
function guarded(when: string | undefined, inner: readonly string[]): string[] {
  return when === undefined ? [...inner] : [`{{- if ${when} }}`, ...inner, '{{- end }}'];
}

const isRaw = (tree: Tree): tree is Raw => typeof tree === 'object' && tree !== null && tree.kind === 'raw';

const block = (text: string, indent: number) =>
  text.replaceAll(INDENT, String(indent)).replaceAll(PAD, ' '.repeat(indent)).split('\n');

function entry(head: string, value: Tree, indent: number): string[] {
  const pad = ' '.repeat(indent);
  if (isMap(value) || isSeq(value)) {
    const empty = isMap(value) ? value.entries.length === 0 : value.items.length === 0;
    if (empty) return [`${pad}${head} ${isMap(value) ? '{}' : '[]'}`];
    return [`${pad}${head}`, ...lines(value, indent + 2)];
  }
  if (isRaw(value) && value.block) {
    return [`${pad}${head}`, ...block(value.text, indent + 2)];
  }
  const [first = '', ...rest] = leaf(value);
  return [`${pad}${head} ${first}`, ...rest.map((line) => (line === '' ? '' : `${pad}${line}`))];
}

function item(value: Tree, indent: number): string[] {
  const pad = ' '.repeat(indent);
  if (isRaw(value) && value.block) return block(value.text, indent);
  if (!isMap(value)) return entry('-', value, indent);
  // The first entry is on the line of the dash: in a list, a map begins with an entry without a condition.
  const [first, ...rest] = value.entries.toSorted(
    (a, b) => Number(a.when !== undefined) - Number(b.when !== undefined),
  );
  if (first === undefined) return [`${pad}- {}`];
  const [head = '', ...more] = entry(`${scalar(first.key)}:`, first.value, indent + 2);
  return [`${pad}- ${head.trimStart()}`, ...more, ...lines({ kind: 'map', entries: rest }, indent + 2)];
}

function leaf(value: Tree): string[] {
  if (isRaw(value)) return [value.text];
  if (typeof value === 'object' && value !== null && value.kind === 'choice') {
    const cases = value.others.map(
      ({ when, value: other }, index) => `{{ ${index > 0 ? 'else ' : ''}if ${when} }}${scalar(other)}`,
    );
    return [`${cases.join('')}{{ else }}${scalar(value.value)}{{ end }}`];
  }
  return scalar(value as Scalar).split('\n');
}

/** YAML text in which template syntax is escaped. */
function scalar(value: Scalar): string {
  // Format it within a map, so that the lines of a long text are indented.
  const text = stringify({ k: value }, { lineWidth: 0 }).slice('k: '.length).trimEnd();
  return text.replace(/\{\{|\}\}/g, (mark) => `{{ "${mark}" }}`);
}
