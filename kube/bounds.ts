import * as z from 'zod';

/** Fields with maxima for objects that enter: the API server limits few. One that exceeds a maximum is unreadable. */

/** Characters of an object's name (RFC 1123 subdomain), and of a qualified name: prefix, slash and name. */
export const MAX_NAME_CHARACTERS = 253;
export const MAX_QUALIFIED_CHARACTERS = 253 + 1 + 63;
/** Characters of a uid. The API server's are UUIDs, and the kubelet's of static pods are MD5 sums. */
const MAX_UID_CHARACTERS = 64;
export const MAX_ANNOTATION_CHARACTERS = 16_384;
const MAX_MESSAGE_CHARACTERS = 1024;

/** UTF-8 has no representation of half a surrogate pair, so it fails in a URL. */
const WELL_FORMED = /^\P{Cs}*$/u;

/** A text that is refused if it is longer. */
export function text(maxCharacters: number) {
  return z
    .string()
    .max(maxCharacters, { error: `longer than ${maxCharacters} characters`, abort: true })
    .regex(WELL_FORMED, 'contains half a surrogate pair');
}

/** A text that is cut if it is longer. */
export function truncated(maxCharacters: number) {
  // A slice would keep the whole text in memory.
  return z
    .string()
    .transform((value) =>
      value.length <= maxCharacters ? value : Buffer.from(value.slice(0, maxCharacters), 'utf16le').toString('utf16le'),
    );
}

export const name = text(MAX_NAME_CHARACTERS);
export const qualifiedName = text(MAX_QUALIFIED_CHARACTERS);
export const uid = text(MAX_UID_CHARACTERS);
/** A word of an enumeration, a time, a version, a quantity, or the name of a container, a namespace or a kind. */
export const MAX_WORD_CHARACTERS = 64;
export const word = text(MAX_WORD_CHARACTERS);
export const message = truncated(MAX_MESSAGE_CHARACTERS);
export const reason = truncated(MAX_NAME_CHARACTERS);
/** Only the presence of the text matters. */
export const presence = z.string().transform(() => '');

/** A list that is refused before its items are read if it has more. */
export function list<S extends z.ZodType>(item: S, maxItems: number) {
  return counted<z.input<S>[]>(maxItems).pipe(z.array(item).max(maxItems));
}

/** The same, but absent if an item has an unknown shape. */
export function listOrNone<S extends z.ZodType>(item: S, maxItems: number) {
  return counted<z.input<S>[] | undefined>(maxItems)
    .pipe(z.array(item).max(maxItems).optional().catch(undefined))
    .nullish();
}

function counted<T>(maxItems: number) {
  return z.custom<T>((value) => !Array.isArray(value) || value.length <= maxItems, `more than ${maxItems} items`);
}

/**
 * A map by qualified names, words or uids, refused before its entries are read if it has more. It drops `__proto__`,
 * which the API server accepts as none of these.
 */
export function map<V extends z.ZodType>(key: z.ZodString, value: V, maxEntries: number) {
  const longKey = `a key is longer than ${key.maxLength} characters`;
  return z
    .custom<z.input<z.ZodRecord<z.ZodString, V>>>(
      (object) => typeof object !== 'object' || object === null || Object.keys(object).length <= maxEntries,
      `more than ${maxEntries} entries`,
    )
    .pipe(z.record(key, value, { error: ({ code }) => (code === 'invalid_key' ? longKey : undefined) }));
}
