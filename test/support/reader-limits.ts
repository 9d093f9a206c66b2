import type * as z from 'zod';

/** Whose terms have limits of requirements and values in all of them. */
export const AFFINITY = '.spec.affinity.nodeAffinity';

/**
 * The limits above which one of these schemas cannot read an object, by path: `.metadata.uid` of characters, `.a[] items`,
 * `.a{} entries`, `.a{key}` of the characters of a key. What a schema cuts or ignores has none.
 */
export function limitsOf(schemas: readonly z.ZodType[]): ReadonlyMap<string, number> {
  const limits = new Map<string, number>();
  for (const schema of schemas) collect(schema, '', limits);
  return limits;
}

interface Definition {
  readonly type: string;
  readonly innerType?: z.ZodType;
  readonly element?: z.ZodType;
  readonly shape?: Readonly<Record<string, z.ZodType>>;
  readonly options?: readonly z.ZodType[];
  readonly in?: z.ZodType;
  readonly out?: z.ZodType;
  readonly keyType?: z.ZodType;
  readonly valueType?: z.ZodType;
}

function collect(schema: z.ZodType, path: string, limits: Map<string, number>): void {
  const add = (at: string, max: number | null | undefined) => {
    if (typeof max === 'number') limits.set(at, Math.min(max, limits.get(at) ?? max));
  };
  const definition = schema.def as unknown as Definition;
  const { type, innerType, element, shape = {}, options = [], keyType, valueType } = definition;
  if (type === 'catch') return;
  if (type === 'string') add(path, (schema as z.ZodString).maxLength);
  if (type === 'custom') addCounts(schema, path, add);
  if (path === AFFINITY && type === 'object') addTotals(schema, path, add);
  if (innerType) collect(innerType, path, limits);
  if (element) collect(element, `${path}[]`, limits);
  if (keyType) collect(keyType, `${path}{key}`, limits);
  if (valueType) collect(valueType, `${path}{}`, limits);
  for (const [name, field] of Object.entries(shape)) collect(field, `${path}.${name}`, limits);
  for (const option of options) collect(option, path, limits);
  for (const part of [definition.in, definition.out]) if (part) collect(part, path, limits);
}

const MORE_THAN_ANY_LIMIT = 1_000_000;

/** The most for which a check holds, if it does not hold for every number. */
function mostThat(holds: (count: number) => boolean): number | undefined {
  if (holds(MORE_THAN_ANY_LIMIT)) return undefined;
  let [most, tooMany] = [0, MORE_THAN_ANY_LIMIT];
  while (tooMany - most > 1) {
    const middle = Math.floor((most + tooMany) / 2);
    if (holds(middle)) most = middle;
    else tooMany = middle;
  }
  return most;
}

type Add = (at: string, max: number | undefined) => void;

/** Of lists and maps, which are counted before their items are read. */
function addCounts(schema: z.ZodType, path: string, add: Add): void {
  const entries = (count: number) => Object.fromEntries(Array.from({ length: count }, (_, i) => [i, '']));
  const items = mostThat((count) => schema.safeParse(Array(count)).success);
  if (items !== undefined) add(`${path}[] items`, items);
  else
    add(
      `${path}{} entries`,
      mostThat((count) => schema.safeParse(entries(Math.min(count, 100_000))).success),
    );
}

/** Of requirements and values in all terms. */
function addTotals(schema: z.ZodType, path: string, add: Add): void {
  const parts = (total: number, each: number) =>
    Array.from({ length: Math.min(64, Math.ceil(total / each)) }, (_, i) => Math.min(each, total - i * each));
  const reads = (requirements: object[][]) => {
    const nodeSelectorTerms = requirements.map((matchExpressions) => ({ matchExpressions }));
    return schema.safeParse({ requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms } }).success;
  };
  const requirement = (values: number) => ({ key: 'k', operator: 'In', values: Array(values).fill('v') });
  const requirements = (count: number) => parts(count, 100).map((size) => Array(size).fill(requirement(0)));
  const values = (count: number) => parts(count, 1000).map((size) => [requirement(size)]);
  add(
    `${path} requirements`,
    mostThat((count) => reads(requirements(count))),
  );
  add(
    `${path} values`,
    mostThat((count) => reads(values(count))),
  );
}
