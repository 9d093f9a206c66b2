import type * as z from 'zod';

/** Whether a value has a shape, and whether parsing would leave all of it unchanged. */
export type Check = (value: unknown) => boolean;

/** A function that a schema applies to a value. */
type Transformation = (...args: never[]) => unknown;

/** For each registered transformation, the check for values that it leaves unchanged. */
const known = new WeakMap<Transformation, Check>();

/**
 * Registers which values a transformation of a schema returns unchanged.
 * @returns the transformation
 */
export function leaves<Its extends Transformation>(transformation: Its, check: Check): Its {
  known.set(transformation, check);
  return transformation;
}

/**
 * Compiles a schema into a check that neither copies nor explains. True means that the schema accepts the value and
 * changes no declared field, so the caller can use the value without parsing it. False means that the schema must parse
 * the value. The check returns false for parts of a schema that it does not support.
 *
 * Parsing one launcher with its schema takes a twentieth of a review's processor time and creates garbage of the same
 * size.
 */
export function asIs(schema: z.core.$ZodType): Check {
  const { def } = (schema as z.core.$ZodTypes)._zod;
  switch (def.type) {
    case 'unknown':
      return () => true;
    case 'boolean':
      return hasRules(def) ? never : (value) => typeof value === 'boolean';
    case 'string': {
      // A text with a format, such as an address, has its rules outside `checks`.
      const least = 'format' in def ? Number.POSITIVE_INFINITY : leastLength(def);
      return (value) => typeof value === 'string' && value.length >= least;
    }
    case 'number':
      return numberAsIs(def);
    case 'enum': {
      const values = new Set<unknown>(Object.values(def.entries));
      return (value) => values.has(value);
    }
    case 'literal': {
      const values = new Set<unknown>(def.values);
      return (value) => values.has(value);
    }
    case 'optional': {
      const inner = asIs(def.innerType);
      return (value) => value === undefined || inner(value);
    }
    case 'nullable': {
      const inner = asIs(def.innerType);
      return (value) => value === null || inner(value);
    }
    case 'catch':
      return asIs(def.innerType);
    case 'array': {
      const element = asIs(def.element);
      const least = leastLength(def);
      return (value) => Array.isArray(value) && value.length >= least && value.every(element);
    }
    case 'record': {
      const [key, its] = [(def.keyType as z.core.$ZodTypes)._zod.def, asIs(def.valueType)];
      return key.type !== 'string' || hasRules(key) || hasRules(def) ? never : (value) => recordAsIs(value, its);
    }
    case 'pipe': {
      const before = asIs(def.in);
      const { transform } = (def.out as z.core.$ZodTransform)._zod.def;
      const leavesIt = known.get(transform as Transformation);
      return leavesIt === undefined ? never : (value) => before(value) && leavesIt(value);
    }
    case 'object':
      return hasRules(def) || !isOpen(def) ? never : fieldsAsIs(def.shape);
    default:
      return never;
  }
}

const never: Check = () => false;

const hasRules = ({ checks }: { readonly checks?: readonly unknown[] | undefined }) => (checks ?? []).length > 0;

/** Whether an object may have other fields, which a schema then drops or keeps. */
const isOpen = ({ catchall }: z.core.$ZodObjectDef) =>
  catchall === undefined || (catchall as z.core.$ZodTypes)._zod.def.type === 'unknown';

/** The minimum length, the only supported rule; infinite if there are other rules, so that no value passes. */
function leastLength({ checks = [] }: { readonly checks?: readonly z.core.$ZodCheck<never>[] | undefined }): number {
  let least = 0;
  for (const { _zod } of checks) {
    const { def } = _zod as z.core.$ZodCheckMinLength['_zod'];
    least = def.check === 'min_length' ? Math.max(least, def.minimum) : Number.POSITIVE_INFINITY;
  }
  return least;
}

/** A number, also a safe integer or one with a minimum. JSON has no NaN, but `1e999` is Infinity, which Zod refuses. */
function numberAsIs({ checks = [] }: z.core.$ZodNumberDef): Check {
  let accepts: (value: number) => boolean = Number.isFinite;
  let least = Number.NEGATIVE_INFINITY;
  for (const { _zod } of checks) {
    const def = _zod.def as z.core.$ZodCheckNumberFormatDef | z.core.$ZodCheckGreaterThanDef;
    if (def.check === 'number_format' && def.format === 'safeint') accepts = Number.isSafeInteger;
    else if (def.check === 'greater_than' && def.inclusive) least = Math.max(least, Number(def.value));
    else return never;
  }
  return (value) => typeof value === 'number' && accepts(value) && value >= least;
}

/** Zod drops the key `__proto__`, and a field `constructor` makes it refuse an object. */
function recordAsIs(value: unknown, element: Check): boolean {
  if (typeof value !== 'object' || value === null || value.constructor !== Object) return false;
  for (const key in value) {
    if (key === '__proto__' || !element((value as Record<string, unknown>)[key])) return false;
  }
  return true;
}

function fieldsAsIs(shape: Readonly<Record<string, z.core.$ZodType>>): Check {
  const names = Object.keys(shape);
  const checks = names.map((name) => asIs(shape[name]!));
  return (value) => {
    if (typeof value !== 'object' || value === null || Array.isArray(value)) return false;
    for (let at = 0; at < names.length; at++) {
      if (!checks[at]!((value as Record<string, unknown>)[names[at]!])) return false;
    }
    return true;
  };
}
